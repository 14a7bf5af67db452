"""extensions/v1beta1, from which other groups were made."""

from __future__ import annotations

from pilothouse.apis.legacy.ingresses import INGRESSES
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.legacy.workloads import EXTENSIONS

OLDER: dict[tuple[str, str], Older] = {**EXTENSIONS, ("v1beta1", "ingresses"): INGRESSES}
