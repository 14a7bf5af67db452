"""PodTemplates: a template by itself, which no controller of this server uses."""

from __future__ import annotations

from typing import ClassVar, Final

from pilothouse.apis.columns import NAME
from pilothouse.apis.core.pod_spec.annotations import drop_legacy_annotations
from pilothouse.apis.core.pod_spec.cells import container_images, container_names, format_labels
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import options_for_template
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.core.pod_spec.warnings import template_warnings
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.objects import Object

_TEMPLATE: Final = Path("template")


class PodTemplateStrategy(Strategy):
    """Pod templates."""

    generation_rules = GenerationRules(counted=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns: ClassVar[tuple[Column, ...]] = (
        NAME,
        Column(
            "Containers",
            "string",
            lambda obj: container_names(obj["template"]),
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            "string",
            lambda obj: container_images(obj["template"]),
            description="Images referenced by each container in the template.",
        ),
        Column(
            "Pod Labels",
            "string",
            lambda obj: format_labels(obj["template"]["metadata"].get("labels")),
            description="The labels for the pod template.",
        ),
    )

    def default(self, obj: Object) -> None:
        default_pod_template(obj["template"])

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        drop_legacy_annotations(obj["template"]["metadata"])

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        drop_legacy_annotations(obj["template"]["metadata"])

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_pod_template(obj["template"], _TEMPLATE, errs, options_for_template(self.gates))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_pod_template(obj["template"], _TEMPLATE, errs, options_for_template(self.gates, old["template"]))
        return errs

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return template_warnings(obj["template"], _TEMPLATE)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return template_warnings(obj["template"], _TEMPLATE)
