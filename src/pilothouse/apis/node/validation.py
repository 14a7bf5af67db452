"""What makes runtime classes wrong."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.resources import validate_overhead
from pilothouse.apis.core.pod_spec.tolerations import validate_tolerations
from pilothouse.apis.faults import Faults
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required

Object = dict[str, Any]
_HANDLER = Path("handler")
_SCHEDULING = Path("scheduling")
_OPTIONS = PodValidationOptions()


def validate_runtime_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a runtime class: its handler never changes."""
    faults = Faults()
    _validate_handler(obj.get("handler", ""), old, faults)
    overhead = obj.get("overhead")
    if overhead is not None:
        validate_overhead(overhead.get("podFixed") or {}, Path("overhead"), faults.errors, _OPTIONS)
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        faults.errors += labels.validate_labels(scheduling.get("nodeSelector") or {}, _SCHEDULING.child("nodeSelector"))
        _validate_tolerations(scheduling.get("tolerations") or [], _SCHEDULING.child("tolerations"), faults.errors)
    return faults.listed()


def _validate_handler(handler: str, old: Object | None, faults: Faults) -> None:
    kept = old is None or faults.keep_declared(_HANDLER, handler, old.get("handler", ""))
    if not handler:
        faults.declared.append(required(_HANDLER))
    else:
        # The declared rules stop at a change, so the form of a changed handler is judged by the written ones.
        shown = faults.declared if kept else faults.errors
        shown += (invalid(_HANDLER, handler, message) for message in names.check_dns1123_label(handler))


def _validate_tolerations(tolerations: list[Object], path: Path, errs: list[FieldError]) -> None:
    validate_tolerations(tolerations, path, errs, _OPTIONS)
    seen: set[tuple[str, ...]] = set()
    for position, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            errs.append(duplicate(path.index(position), internal_form("core.v1.Toleration", toleration)))
        seen.add(key)
