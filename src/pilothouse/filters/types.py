"""The type every filter takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response

Handler = Callable[[APIRequest], Coroutine[Any, Any, Response]]
