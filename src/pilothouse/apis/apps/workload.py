"""What all kinds with a pod template share: their template's rules, their warnings, and who may write their status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.annotations import drop_legacy_annotations
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.core.pod_spec.warnings import template_warnings
from pilothouse.apis.selectors import validate_label_selector, validate_selector_matches_template
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Context
from pilothouse.apis.strategy_rules import GenerationRules
from pilothouse.apis.validation import IMMUTABLE
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_label
from pilothouse.machinery.objects import Object

SPEC: Final = Path("spec")
STATUS: Final = Path("status")
ALWAYS: Final = ("Always",)
_NAME_WARNING: Final = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


def shown_selector(selector: Object | None) -> Any:
    """A label selector as messages show it."""
    return internal_form("meta.v1.LabelSelector", selector)


def validate_required_selector(selector: Object | None, kind: str, errs: list[FieldError]) -> None:
    """There must be a selector, and one that requires something."""
    if selector is None:
        errs.append(required(SPEC.child("selector"), ""))
        return
    path = SPEC.child("selector")
    validate_label_selector(selector, path, errs)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errs.append(invalid(path, shown_selector(selector), f"empty selector is invalid for {kind}"))


def understand_selector(selector: Object | None, errs: list[FieldError], why: str) -> labels.Selector | None:
    """The selector to match with; None and an error where it cannot be understood."""
    try:
        return labels.from_object(selector)
    except labels.SelectorError:
        errs.append(invalid(SPEC.child("selector"), shown_selector(selector), why))
        return None


def validate_selector_kept(spec: Object, old: Object, errs: list[FieldError]) -> None:
    """Selectors never change."""
    if spec.get("selector") != old.get("selector"):
        errs.append(invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), IMMUTABLE))


def validate_running_template(
    template: Object, errs: list[FieldError], options: PodValidationOptions, kind: str
) -> None:
    """A template of pods that are to run until somebody stops them."""
    path = SPEC.child("template")
    validate_pod_template(template, path, errs, options)
    validate_endless(template, path, errs, kind)


def validate_endless(template: Object, path: Path, errs: list[FieldError], kind: str) -> None:
    """Neither a restart policy that ends nor a deadline."""
    spec = template["spec"]
    if spec.get("restartPolicy") != "Always":
        errs.append(not_supported(path.child("spec", "restartPolicy"), spec.get("restartPolicy", ""), ALWAYS))
    if "activeDeadlineSeconds" in spec:
        where = path.child("spec", "activeDeadlineSeconds")
        errs.append(forbidden(where, f"activeDeadlineSeconds in {kind} is not Supported"))


def validate_replicated_template(spec: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Selector and template of deployments and replica sets."""
    validate_required_selector(spec.get("selector"), "deployment", errs)
    selector = understand_selector(spec.get("selector"), errs, "invalid label selector")
    if selector is not None:
        validate_selector_matches_template(selector, spec["template"], SPEC.child("template"), errs)
        validate_running_template(spec["template"], errs, options, "ReplicaSet")


def validate_within_total(status: Object, names: tuple[str, ...], errs: list[FieldError]) -> None:
    """No kind of replica can be more than all replicas."""
    total, why = status.get("replicas", 0), "cannot be greater than status.replicas"
    for name in names:
        count = status.get(name, 0)
        if count > total:
            errs.append(invalid(STATUS.child(name), count, why))


def validate_collisions_kept(status: Object, old: Object, errs: list[FieldError]) -> None:
    """The count of name collisions only grows."""
    count, before = status.get("collisionCount"), old.get("collisionCount")
    if before is not None and (count is None or count < before):
        errs.append(invalid(STATUS.child("collisionCount"), count or 0, "cannot be decremented"))


BLANK_SCALABLE: Final[Mapping[str, Any]] = {"spec": {"replicas": 0}}


_LABELLED: Final = {
    "apps/v1beta1": ("apps.v1.Deployment", "apps.v1.StatefulSet"),
    "extensions/v1beta1": ("apps.v1.DaemonSet", "apps.v1.Deployment", "apps.v1.ReplicaSet"),
}


class WorkloadStrategy(StatusKeeper):
    """A kind whose spec holds a pod template."""

    generation_rules = GenerationRules(counted=True)
    reset_fields: tuple[str, ...] = ("status",)
    warns_about_names: ClassVar[bool] = False
    """Whether names that are no DNS label are worth a warning: pods get their names from them."""
    keeps_selector: ClassVar[bool] = True
    """Whether the selector stays as it was made; through the first versions it could change."""
    template_path: ClassVar[tuple[str, ...]] = ("spec", "template")

    def template_of(self, obj: Object) -> Object:
        """The pod template."""
        for step in self.template_path:
            obj = obj[step]
        return obj

    def default_older(self, obj: Object, api_version: str) -> None:
        """The first versions labelled workloads like their pods."""
        labels = self.template_of(obj)["metadata"].get("labels")
        if self.type_name in _LABELLED.get(api_version, ()) and labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        drop_legacy_annotations(self.template_of(obj)["metadata"])

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        drop_legacy_annotations(self.template_of(obj)["metadata"])

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        warnings = []
        if self.warns_about_names:
            messages = check_dns1123_label(obj["metadata"].get("name", ""))
            if messages:
                warnings.append(f"{_NAME_WARNING}[{' '.join(messages)}]")
        return warnings + self.template_warnings(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return self.template_warnings(obj)

    def template_warnings(self, obj: Object) -> list[str]:
        """What is questionable about the template, though it is valid."""
        return template_warnings(self.template_of(obj), Path(*self.template_path))
