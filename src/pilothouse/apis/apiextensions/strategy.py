"""CustomResourceDefinitions: defaults, what may be changed, how they go, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pilothouse.apis.apiextensions import definitions
from pilothouse.apis.apiextensions.defaults import set_defaults
from pilothouse.apis.apiextensions.validation import validate_definition, validate_definition_update
from pilothouse.apis.columns import CREATED_AT, NAME
from pilothouse.apis.strategy import Context, Object, StatusStrategy, Strategy
from pilothouse.machinery.field_errors import FieldError


class DefinitionStatusStrategy(StatusStrategy):
    """What controllers report; metadata may change along with it."""

    allow_unconditional_update = False
    reset_fields = ("metadata", "spec")

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return []


class DefinitionStrategy(Strategy):
    """Definitions."""

    generation = True
    allow_unconditional_update = False
    returns_deleted = False
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": DefinitionStatusStrategy}
    reset_fields = ("status",)
    columns = (NAME, CREATED_AT)

    def default(self, obj: Object) -> None:
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        stored = [v["name"] for v in definitions.versions(obj) if v.get("storage")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored[:1] or None,
        }

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        status: dict[str, Any] = dict(old["status"])
        obj["status"] = status
        for version in definitions.versions(obj):
            stored = status.get("storedVersions") or []
            if version.get("storage") and version["name"] not in stored:
                status["storedVersions"] = [*stored, version["name"]]

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_definition(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_definition_update(obj, old)

    def begin_deletion(self, ctx: Context, obj: Object) -> bool:
        metadata = obj["metadata"]
        metadata["deletionTimestamp"] = ctx.now
        finalizers = metadata.get("finalizers") or []
        if definitions.CLEANUP_FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, definitions.CLEANUP_FINALIZER]
        status = obj["status"] = dict(obj["status"])
        status["conditions"] = [dict(each) for each in status.get("conditions") or ()]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        leaving = {
            "type": definitions.TERMINATING, "status": "True", "reason": "InstanceDeletionPending", "message": message,
        }  # fmt: skip
        definitions.set_condition(obj, leaving, ctx.now)
        return True


STRATEGIES: dict[str, type[Strategy]] = {"customresourcedefinitions": DefinitionStrategy}
