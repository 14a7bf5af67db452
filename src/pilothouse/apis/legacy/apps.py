"""The betas of the group apps."""

from __future__ import annotations

from pilothouse.apis.legacy.older import Older
from pilothouse.apis.legacy.workloads import APPS

OLDER: dict[tuple[str, str], Older] = {**APPS}
