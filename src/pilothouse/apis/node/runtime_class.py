"""Runtime classes: created by PUT too, never updated without a version."""

from __future__ import annotations

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.resources import validate_overhead
from pilothouse.apis.core.pod_spec.tolerations import validate_tolerations
from pilothouse.apis.deprecated_labels import DEPRECATED
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object

_HANDLER = Path("handler")
_SCHEDULING = Path("scheduling")
_OPTIONS = PodValidationOptions()


def validate_runtime_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a runtime class: its handler never changes."""
    errs = ErrorList()
    _validate_handler(obj.get("handler", ""), old, errs)
    overhead = obj.get("overhead")
    if overhead is not None:
        validate_overhead(overhead.get("podFixed") or {}, Path("overhead"), errs.errors, _OPTIONS)
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        errs.errors += labels.validate_labels(scheduling.get("nodeSelector") or {}, _SCHEDULING.child("nodeSelector"))
        _validate_tolerations(scheduling.get("tolerations") or [], _SCHEDULING.child("tolerations"), errs.errors)
    return errs.listed()


def _validate_handler(handler: str, old: Object | None, errs: ErrorList) -> None:
    kept = old is None or errs.keep_declared(_HANDLER, handler, old.get("handler", ""))
    if not handler:
        errs.declared.append(required(_HANDLER))
    else:
        # The declared rules stop at a change, so the form of a changed handler is judged by the written ones.
        shown, unit = (errs.declared, "bytes") if kept else (errs.errors, "characters")
        shown += (invalid(_HANDLER, handler, message) for message in names.check_dns1123_label(handler, unit))


def _validate_tolerations(tolerations: list[Object], path: Path, errs: list[FieldError]) -> None:
    validate_tolerations(tolerations, path, errs, _OPTIONS)
    seen: set[tuple[str, ...]] = set()
    for position, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            errs.append(duplicate(path.index(position), internal_form("core.v1.Toleration", toleration)))
        seen.add(key)


class RuntimeClassStrategy(Strategy):
    """Runtime classes."""

    metadata_rules = MetadataRules(standard_finalizers=False, judges_prefix_on_update=True)
    update_rules = UpdateRules(allow_create=True, allow_unconditional=False)
    columns = (NAME, Column("Handler", "string", lambda o: o.get("handler", "")), AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_runtime_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_runtime_class(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        selector = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {DEPRECATED[key]}" for key in selector if key in DEPRECATED]

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)
