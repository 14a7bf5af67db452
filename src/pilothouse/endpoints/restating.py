"""Faults of empty lists and maps that the client wrote out, shown as they were written.

Decoding leaves empty lists and maps out, so a fault of a missing one says ``null``. The original says ``{}`` or ``[]``
where the body has it. The body is looked at again only when a write was refused.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.schema.ordering import below
from pilothouse.machinery.schema.types import ListOf, MapOf, Struct, Type

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def restate(error: errors.StatusError, struct: Struct, given: Any) -> errors.StatusError:
    """The same refusal, its values as the body has them."""
    changed = False
    for fault in error.faults:
        if fault.value is None:
            value = _empty_at(struct, given, fault.field)
            if value is not None:
                fault.value = value
                changed = True
    if not changed or error.details is None:
        return error
    kind = GroupKind(error.details.get("group", ""), error.details.get("kind", ""))
    return errors.invalid(kind, error.details.get("name", ""), error.faults)


def _empty_at(kind: Type | None, value: Any, field: str) -> Any:
    """The empty list or map at a field of the body; None where there is something else, or a struct."""
    for name, position in _STEP.findall(field):
        if name:
            value = value.get(name) if value.__class__ is dict else None
        else:
            value = value[int(position)] if value.__class__ is list and int(position) < len(value) else None
        kind = below(kind, name)
    return value if isinstance(kind, ListOf | MapOf) and value in ([], {}) else None
