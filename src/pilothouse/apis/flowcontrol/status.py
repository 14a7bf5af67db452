"""What is reported about flow schemas and priority levels."""

from __future__ import annotations

from pilothouse.apis.strategy import Context, StatusStrategy, keep
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, required
from pilothouse.machinery.objects import Object


def validate_status(obj: Object) -> list[FieldError]:
    """Errors of a status: conditions have types, each once."""
    errs: list[FieldError] = []
    seen: set[str] = set()
    for position, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path = Path("status", "conditions").index(position).child("type")
        named = condition.get("type", "")
        if named in seen:
            errs.append(duplicate(path, named))
        seen.add(named)
        if not named:
            errs.append(required(path))
    return errs


class FlowControlStatusStrategy(StatusStrategy):
    """What the server itself reports; all metadata but the managed fields stays."""

    reset_fields = ("metadata", "spec")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        metadata = dict(old["metadata"])
        keep(metadata, obj["metadata"], "managedFields")
        obj["metadata"] = metadata

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_status(obj)
