"""Errors of lists and maps that the client gave as empty, shown as they were given.

Rules see such a field as missing, so an error that shows its value says ``null``; kube-apiserver says ``[]`` or ``{}``.
Objects are looked at again only when they are refused and when they have something to remember (``emptied.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.schema.emptied import Emptied

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def restate(errors: Iterable[FieldError], obj: dict[str, Any]) -> None:
    """Give errors without a value the empty one that stands in the object."""
    if isinstance(obj, Emptied):
        for error in errors:
            if error.value is None:
                error.value = _empty_at(obj, error.field)


def _empty_at(value: Any, field: str) -> Any:
    """The list or map that was given as empty at a field."""
    holder: Any = None
    name = ""
    for member, key in _STEP.findall(field):
        name = member or key
        holder = value
        if isinstance(holder, dict):
            value = holder.get(name)
        elif isinstance(holder, list):
            value = holder[int(name)] if name.isdecimal() and int(name) < len(holder) else None
        else:
            return None
    return holder.empty.get(name) if value is None and isinstance(holder, Emptied) else None
