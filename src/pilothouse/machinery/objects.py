"""The type of decoded JSON: objects and their parts are plain dicts everywhere."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, or a part of one: a spec, a container, an item of a list."""
