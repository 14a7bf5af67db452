"""CustomResourceDefinitions: defaults, what may be changed, how they go, and how they are shown.

Validation brings the whole schema engine along and is imported with the first write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.apiextensions.custom_resource_definition.defaults import set_defaults
from pilothouse.apis.apiextensions.schema.traversal import has_more_than
from pilothouse.apis.columns import CREATED_AT, NAME
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules, MetadataRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

_MANY_SCHEMAS: Final = 2000
"""Judging one schema takes some microseconds; rules take longer, but are few."""


class DefinitionStatusStrategy(StatusStrategy):
    """What controllers report; metadata may change along with it."""

    metadata_rules = MetadataRules(standard_finalizers=False, repeats_errors=True)
    update_rules = UpdateRules(allow_unconditional=False)
    reset_fields = ("spec",)

    def default(self, obj: Object) -> None:
        set_defaults(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        from pilothouse.apis.apiextensions.custom_resource_definition.validation import validate_status_update

        return validate_status_update(obj, old)


def _versions_cell(obj: Object) -> str:
    served = definitions.served_versions(obj)
    return ",".join(sorted(each["name"] + ("(storage)" if each.get("storage") else "") for each in served))


def _kind_cell(obj: Object) -> str:
    return str(obj["spec"]["names"].get("kind", ""))


def _short_names_cell(obj: Object) -> str:
    return ",".join(obj["spec"]["names"].get("shortNames") or ())


def _established_cell(obj: Object) -> bool:
    return definitions.is_true(obj, definitions.ESTABLISHED)


class DefinitionStrategy(Strategy):
    """Definitions."""

    validate_name = staticmethod(name_is_path_segment)
    metadata_rules = MetadataRules(standard_finalizers=False, judged_last=True, repeats_errors=True)
    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    deletion_rules = DeletionRules(begins_by_policy=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": DefinitionStatusStrategy}
    reset_fields = ("status",)
    structured: ClassVar[bool] = True
    """Whether there must be schemas, and structural ones."""
    columns = (
        NAME,
        Column("Scope", "string", lambda obj: obj["spec"].get("scope", ""), description="Cluster/Namespaced"),
        Column("Versions", "string", _versions_cell, description="Served versions"),
        CREATED_AT,
        Column("Group", "string", lambda obj: obj["spec"].get("group", ""), priority=1, description="API group"),
        Column("Kind", "string", _kind_cell, priority=1, description="CustomResource kind"),
        Column("ShortNames", "string", _short_names_cell, priority=1, description="Short names"),
        Column("Established", "boolean", _established_cell, priority=1, description="Established status"),
    )

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
        stored, written = status.get("storedVersions") or [], definitions.storage_version(obj)
        if written and written not in stored:
            status["storedVersions"] = [*stored, written]

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        from pilothouse.apis.apiextensions.custom_resource_definition.validation import validate_definition

        return validate_definition(obj, structured=self.structured)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        from pilothouse.apis.apiextensions.custom_resource_definition.validation import validate_definition_update

        return validate_definition_update(obj, old, structured=self.structured)

    def is_heavy(self, obj: Object) -> bool:
        schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in definitions.versions(obj))
        return any(has_more_than(schema, _MANY_SCHEMAS) for schema in schemas)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        from pilothouse.apis.apiextensions.custom_resource_definition.warnings import definition_warnings

        return definition_warnings(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        from pilothouse.apis.apiextensions.custom_resource_definition.warnings import definition_warnings

        known = set(definition_warnings(old))
        return [each for each in definition_warnings(obj) if each not in known]

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
