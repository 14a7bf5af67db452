"""Who reacts to the eviction of a pod: responders that its spec names, each with a priority.

The rules are declared upstream, so responders that the stored spec has already are not judged again.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required, too_many
from pilothouse.machinery.names import check_prefixed_label_key
from pilothouse.machinery.objects import Object

_LIMIT: Final = 10
_HIGHEST: Final = 100_000
_RESERVED_BELOW: Final = 1000
_RESERVED: Final = ("k8s.io", "kubernetes.io")


def validate_responders(responders: list[Object], old: list[Object], path: Path, errs: list[FieldError]) -> None:
    """Errors of a spec's responders; ``path`` is the list's."""
    if responders == old:
        return
    if len(responders) > _LIMIT:
        errs.append(too_many(path, len(responders), _LIMIT))
        return
    names: set[str] = set()
    for position, responder in enumerate(responders):
        name = responder.get("name", "")
        if name in names:
            errs.append(duplicate(path.index(position), internal_form("core.v1.EvictionResponder", responder)))
        names.add(name)
    for position, responder in enumerate(responders):
        if responder not in old:
            validate_participant(responder.get("name", ""), path.index(position).child("name"), errs)
            _validate_priority(responder.get("priority"), path.index(position).child("priority"), errs)


def validate_participant(name: str, path: Path, errs: list[FieldError]) -> None:
    """Errors of the name of who asks for evictions or reacts to them."""
    if not name:
        errs.append(required(path))
        return
    domain = name.partition("/")[0].lower().strip().rstrip(".")
    if any(domain == suffix or domain.endswith(f".{suffix}") for suffix in _RESERVED):
        reserved = ", ".join(f"*.{suffix}" for suffix in _RESERVED)
        errs.append(invalid(path, name, f"domain names {reserved} are reserved"))
    errs += (invalid(path, name, message) for message in check_prefixed_label_key(name))


def _validate_priority(priority: int | None, path: Path, errs: list[FieldError]) -> None:
    if priority is None:
        errs.append(required(path))
    elif priority < 0:
        errs.append(invalid(path, priority, "must be greater than or equal to 0"))
    elif priority < _RESERVED_BELOW:
        errs.append(invalid(path, priority, "priorities 0-999 are reserved for responders with *.k8s.io suffix"))
    elif priority > _HIGHEST:
        errs.append(invalid(path, priority, f"must be less than or equal to {_HIGHEST}"))
