"""Controller revisions: snapshots of what a workload once was. Their data never changes."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.apis.validation import IMMUTABLE, NEGATIVE
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.raw import shown_text

_DATA: Final = Path("data")


def _controller_cell(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group, _, _ = owner.get("apiVersion", "").rpartition("/")
            kind = owner.get("kind", "").lower()
            return f"{kind}.{group.lower()}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
    return "<none>"


CONTROLLER_REVISION_COLUMNS: Final = (
    NAME,
    Column("Controller", "string", _controller_cell, description="Controller of the object"),
    Column(
        "Revision",
        "string",
        lambda obj: obj.get("revision", 0),
        description=Doc("apps.v1.ControllerRevision", "revision"),
    ),
    AGE,
)


class ControllerRevisionStrategy(Strategy):
    """Controller revisions."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    columns = CONTROLLER_REVISION_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = _check_number(obj)
        data = obj.get("data")
        if data is None:
            errs.append(required(_DATA, "data is mandatory"))
        elif not isinstance(data, dict):
            errs.append(required(_DATA, "data must be a valid JSON object"))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = _check_number(obj)
        if ctx.raw_changed or obj.get("data") != old.get("data"):
            errs.append(invalid(_DATA, _as_written(ctx, obj), IMMUTABLE))
        return errs


def _as_written(ctx: Context, obj: Object) -> Any:
    """The data as it was sent, without blanks."""
    text = ctx.raw_texts.get(("data",))
    return obj.get("data") if text is None else shown_text(text)


def _check_number(obj: Object) -> list[FieldError]:
    revision = obj.get("revision", 0)
    return [invalid(Path("revision"), revision, NEGATIVE)] if revision < 0 else []
