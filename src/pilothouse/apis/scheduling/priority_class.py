"""Priority classes. Names with the system's prefix belong to two classes of fixed priority."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.validation import one_of_required
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
}
_POLICIES: Final = ("PreemptLowerPriority", "Never")
_DOC: Final = "scheduling.v1.PriorityClass"


def validate_priority_class(obj: Object) -> list[FieldError]:
    """Errors of a new priority class."""
    errs: list[FieldError] = []
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith(SYSTEM_PREFIX):
        error = _system_error(name, value, obj.get("globalDefault", False))
        if error:
            why = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {error}"
            errs.append(forbidden(Path("metadata", "name"), why))
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errs.append(forbidden(Path("value"), why))
    if obj.get("preemptionPolicy") is not None:
        one_of_required(obj["preemptionPolicy"], _POLICIES, Path(), "preemptionPolicy", errs)
    return errs


def _system_error(name: str, value: int, is_default: bool) -> str:
    fixed = SYSTEM_CLASSES.get(name)
    if fixed is None:
        return f"{name} is not a known system priority class"
    if value != fixed:
        return f"value of {name} PriorityClass must be {fixed}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


class PriorityClassStrategy(Strategy):
    """Priority classes: neither value nor policy changes, and the generation stays 1."""

    columns = (
        NAME,
        Column("Value", "integer", lambda o: o.get("value", 0), description=Doc(_DOC, "value")),
        Column(
            "Global-Default", "boolean", lambda o: o.get("globalDefault", False), description=Doc(_DOC, "globalDefault")
        ),
        AGE,
        Column(
            "PreemptionPolicy",
            "string",
            lambda o: o.get("preemptionPolicy", ""),
            description=Doc(_DOC, "preemptionPolicy"),
        ),
    )

    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_priority_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        if obj.get("value", 0) != old.get("value", 0):
            errs.append(forbidden(Path("value"), "may not be changed in an update."))
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            errs.append(invalid(Path("preemptionPolicy"), Named(obj.get("preemptionPolicy", "")), IMMUTABLE))
        return errs

    def check_graceful_delete(self, ctx: Context, obj: Object, grace: int | None) -> int | None:
        """The system's own classes stay."""
        name = obj["metadata"]["name"]
        if name in SYSTEM_CLASSES:
            where = GroupResource("scheduling.k8s.io", "priorityclasses")
            raise errors.forbidden(where, name, "this is a system priority class and cannot be deleted")
        return None
