"""Replication controllers: the oldest workload, with a selector of plain labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.pod_spec.annotations import drop_legacy_annotations
from pilothouse.apis.core.pod_spec.cells import container_images, container_names, format_labels
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.core.pod_spec.warnings import template_warnings
from pilothouse.apis.error_lists import declare_name
from pilothouse.apis.object_names import name_is_declared
from pilothouse.apis.selectors import validate_selector_matches_template
from pilothouse.apis.strategy import Column, Context, Doc, PlainStrategy, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules
from pilothouse.apis.validation import NEGATIVE, non_negative
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_found, not_supported, required
from pilothouse.machinery.names import check_dns1123_label
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_TEMPLATE: Final = _SPEC.child("template")
_STATUS: Final = Path("status")
_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_NON_CONVERTIBLE: Final = "non-convertible.kubernetes.io"


def _validate_spec(
    obj: Object, errs: list[FieldError], options: PodValidationOptions, old: Object | None = None
) -> None:
    spec = obj["spec"]
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        errs.append(required(_SPEC.child("selector"), ""))
    if template is None:
        errs.append(required(_TEMPLATE, ""))
    else:
        _validate_template(template, selector, errs, options)
    # Declared rules come last, and unchanged values are not judged again.
    if old is None:
        declare_name(obj["metadata"], errs)
    for name in ("replicas", "minReadySeconds"):
        value = spec.get(name, 0)
        if value is None:
            errs.append(required(_SPEC.child(name), ""))
        elif value < 0 and (old is None or old.get(name, 0) != value):
            errs.append(invalid(_SPEC.child(name), value, NEGATIVE))


def _validate_template(
    template: Object, selector: dict[str, str], errs: list[FieldError], options: PodValidationOptions
) -> None:
    validate_selector_matches_template(labels.from_labels(selector), template, _TEMPLATE, errs)
    validate_pod_template(template, _TEMPLATE, errs, options)
    policy = template["spec"].get("restartPolicy", "")
    if policy != "Always":
        errs.append(not_supported(_TEMPLATE.child("spec", "restartPolicy"), policy, ("Always",)))
    if "activeDeadlineSeconds" in template["spec"]:
        why = "activeDeadlineSeconds in ReplicationController is not Supported"
        errs.append(forbidden(_TEMPLATE.child("spec", "activeDeadlineSeconds"), why))


def default_replication_controller(obj: Object) -> None:
    """One replica; the labels of the pods are those of the controller and select them."""
    spec = obj["spec"]
    template = spec.get("template")
    given = template["metadata"].get("labels") if template else None
    if given:
        if not spec.get("selector"):
            spec["selector"] = dict(given)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(given)
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if template:
        default_pod_template(template)


class ReplicationControllerStatusStrategy(StatusStrategy):
    """Writes through ``/status``."""

    def default(self, obj: Object) -> None:
        default_replication_controller(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        status = obj.get("status") or {}
        for name in _COUNTS:
            non_negative(status.get(name, 0), _STATUS, name, errs)
        total, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
        why = "cannot be greater than status.replicas"
        over = [name for name in _COUNTS[1:4] if status.get(name, 0) > total]
        errs += (invalid(_STATUS.child(name), status.get(name, 0), why) for name in over)
        available = status.get("availableReplicas", 0)
        if available > ready:
            errs.append(invalid(_STATUS.child("availableReplicas"), available, "cannot be greater than readyReplicas"))
        return errs


def _count(part: str, name: str) -> Any:
    return lambda obj: (obj.get(part) or {}).get(name) or 0


class ReplicationControllerStrategy(PlainStrategy):
    """Replication controllers."""

    validate_name = staticmethod(name_is_declared)
    generation_rules = GenerationRules(counted=True)
    deletion_rules = DeletionRules(orphans_by_default=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ReplicationControllerStatusStrategy}
    field_labels: ClassVar[frozenset[str]] = frozenset({"status.replicas"})
    columns: ClassVar[tuple[Column, ...]] = (
        NAME,
        Column(
            "Desired",
            "integer",
            _count("spec", "replicas"),
            description=Doc("core.v1.ReplicationControllerSpec", "replicas"),
        ),
        Column(
            "Current",
            "integer",
            _count("status", "replicas"),
            description=Doc("core.v1.ReplicationControllerStatus", "replicas"),
        ),
        Column(
            "Ready",
            "integer",
            _count("status", "readyReplicas"),
            description=Doc("core.v1.ReplicationControllerStatus", "readyReplicas"),
        ),
        AGE,
        Column(
            "Containers",
            "string",
            lambda obj: container_names(obj["spec"].get("template")),
            priority=1,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            "string",
            lambda obj: container_images(obj["spec"].get("template")),
            priority=1,
            description="Images referenced by each container in the template.",
        ),
        Column(
            "Selector",
            "string",
            lambda obj: format_labels(obj["spec"].get("selector")),
            priority=1,
            description=Doc("core.v1.ReplicationControllerSpec", "selector"),
        ),
    )

    def default(self, obj: Object) -> None:
        default_replication_controller(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"replicas": 0}
        if obj["spec"].get("template"):
            drop_legacy_annotations(obj["spec"]["template"]["metadata"])

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        if obj["spec"].get("template"):
            drop_legacy_annotations(obj["spec"]["template"]["metadata"])

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        _validate_spec(obj, errs, options_for_template(self.gates))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        spec, before = obj["spec"], old["spec"]
        _validate_spec(obj, errs, options_for_template(self.gates, before.get("template")), before)
        for key, value in (old["metadata"].get("annotations") or {}).items():
            if not key.startswith(_NON_CONVERTIBLE) or key.count("/") != 1:
                continue
            field = key.partition("/")[2]
            if "selector" not in field:
                error = not_found(Path(field), value)
                error.detail = "unknown non-convertible field"
                errs.append(error)
            elif spec.get("selector") != before.get("selector"):
                why = "cannot update non-convertible selector"
                errs.append(invalid(_SPEC.child("selector"), spec.get("selector"), why))
        return errs

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        warnings = template_warnings(obj["spec"].get("template"), _TEMPLATE)
        if messages := check_dns1123_label(obj["metadata"].get("name", "")):
            why = (
                "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is"
                f" recommended: [{' '.join(messages)}]"
            )
            warnings.insert(0, f"metadata.name: {why}")
        return warnings

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        # kube-apiserver looks at the old template here.
        return template_warnings(old["spec"].get("template"), _TEMPLATE)

    def fields(self, obj: Object) -> dict[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}
