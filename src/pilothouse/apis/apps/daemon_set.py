"""Daemon sets: their rules, and the annotation that once was a field (``templateGeneration``).

The count of template changes is kept by the server alone: clients may send what they like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.apps.amounts import is_nothing, validate_amount, validate_not_above_all
from pilothouse.apis.apps.columns import CONTAINER_COLUMNS, selector_cell, selector_column, status_cell
from pilothouse.apis.apps.workload import (
    SPEC,
    STATUS,
    WorkloadStrategy,
    shown_selector,
    validate_collisions_kept,
    validate_running_template,
    validate_selector_kept,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.integers import parse_integer
from pilothouse.apis.selectors import has_invalid_value, validate_label_selector, validate_object_selects_template
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy
from pilothouse.apis.validation import non_negative
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Object

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_TYPES: Final = ("RollingUpdate", "OnDelete")
_COUNTS: Final = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip


def default_daemon_set(obj: Object) -> None:
    """Rolled over one node at a time, with ten revisions to go back to."""
    spec = obj["spec"]
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    elif strategy.get("rollingUpdate") is not None:
        for key in ("maxUnavailable", "maxSurge"):  # kube-apiserver holds numbers here, which cannot be absent
            strategy["rollingUpdate"].setdefault(key, 0)
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    default_pod_template(spec["template"])


def _node_selector_cell(obj: Object) -> str:
    pairs = obj["spec"]["template"]["spec"].get("nodeSelector") or {}
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) or "<none>"


def _daemon_count(title: str, field: str) -> Column:
    return Column(title, "integer", status_cell(field), description=Doc("apps.v1.DaemonSetStatus", field))


DAEMON_SET_COLUMNS: Final = (
    NAME,
    _daemon_count("Desired", "desiredNumberScheduled"),
    _daemon_count("Current", "currentNumberScheduled"),
    _daemon_count("Ready", "numberReady"),
    _daemon_count("Up-to-date", "updatedNumberScheduled"),
    _daemon_count("Available", "numberAvailable"),
    Column("Node Selector", "string", _node_selector_cell, description=Doc("core.v1.PodSpec", "nodeSelector")),
    AGE,
    *CONTAINER_COLUMNS,
    selector_column(selector_cell, "apps.v1.DaemonSetSpec"),
)


def template_generation(obj: Object) -> int:
    """How often the template changed, as the object says."""
    return int((obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, 0))


def set_template_generation(obj: Object, count: int) -> None:
    """Say how often the template changed."""
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(count)}


def settle_template_generation(obj: Object) -> None:
    """What clients send must at least be a number; without one it is zero."""
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
    try:
        set_template_generation(obj, parse_integer(text))
    except ValueError as error:
        why = f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}'
        raise errors.bad_request(why) from None


def validate_daemon_set_spec(spec: Object, options: PodValidationOptions, *, lax: bool = False) -> list[FieldError]:
    """Errors of a daemon set; ``lax`` allows selectors with values that are no label values."""
    errs: list[FieldError] = []
    _validate_selector(spec, errs, lax=lax)
    validate_running_template(spec["template"], errs, options, "DaemonSet")
    non_negative(spec.get("minReadySeconds", 0), SPEC, "minReadySeconds", errs)
    _validate_rollout(spec["updateStrategy"], SPEC.child("updateStrategy"), errs)
    non_negative(spec.get("revisionHistoryLimit") or 0, SPEC, "revisionHistoryLimit", errs)
    return errs


def _validate_selector(spec: Object, errs: list[FieldError], *, lax: bool) -> None:
    selector = spec.get("selector")
    path = SPEC.child("selector")
    validate_label_selector(selector, path, errs, allow_invalid_values=lax)
    validate_object_selects_template(selector, spec["template"], SPEC.child("template"), errs)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errs.append(invalid(path, shown_selector(selector), "empty selector is invalid for daemonset"))


def _validate_rollout(strategy: Object, path: Path, errs: list[FieldError]) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        errs.append(not_supported(path, _shown(strategy), _TYPES))
    elif rolling is None:
        errs.append(required(path.child("rollingUpdate"), ""))
    else:
        _validate_rolling(rolling, path.child("rollingUpdate"), errs)


def _shown(strategy: Object) -> Any:
    shown = internal_form("apps.v1.DaemonSetUpdateStrategy", strategy)
    if shown["RollingUpdate"]:
        shown["RollingUpdate"] = {key: 0 if value is None else value for key, value in shown["RollingUpdate"].items()}
    return shown


def _validate_rolling(rolling: Object, path: Path, errs: list[FieldError]) -> None:
    amounts = {name: rolling.get(name, 0) for name in ("maxUnavailable", "maxSurge")}
    for rule in (validate_amount, validate_not_above_all):
        for name, amount in amounts.items():
            rule(amount, path.child(name), errs)
    missing, extra = (not is_nothing(amount) for amount in amounts.values())
    if missing and extra:
        why = "may not be set when maxUnavailable is non-zero"
        errs.append(invalid(path.child("maxSurge"), amounts["maxSurge"], why))
    elif not missing and not extra:
        errs.append(required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))


class DaemonSetStatusStrategy(StatusStrategy):
    """What the daemon set controller reports."""

    hidden_annotations: ClassVar[tuple[str, ...]] = (TEMPLATE_GENERATION,)

    def default(self, obj: Object) -> None:
        settle_template_generation(obj)
        default_daemon_set(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        set_template_generation(obj, template_generation(old))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        status = obj.get("status") or {}
        for name in _COUNTS:
            non_negative(status.get(name) or 0, STATUS, name, errs)
        validate_collisions_kept(status, old.get("status") or {}, errs)
        return errs


class DaemonSetStrategy(WorkloadStrategy):
    """Daemon sets."""

    type_name = "apps.v1.DaemonSet"
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": DaemonSetStatusStrategy}
    columns = DAEMON_SET_COLUMNS
    blank: ClassVar[Mapping[str, Any]] = {"metadata": {"annotations": {TEMPLATE_GENERATION: "0"}}}
    hidden_annotations: ClassVar[tuple[str, ...]] = (TEMPLATE_GENERATION,)

    def default(self, obj: Object) -> None:
        settle_template_generation(obj)
        default_daemon_set(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        set_template_generation(obj, max(1, template_generation(obj)))

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        changed = obj["spec"]["template"] != old["spec"]["template"]
        set_template_generation(obj, template_generation(old) + changed)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_daemon_set_spec(obj["spec"], options_for_template(self.gates))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        spec, before = obj["spec"], old["spec"]
        if self.keeps_selector:
            validate_selector_kept(spec, before, errs)
        options = options_for_template(self.gates, before["template"])
        lax = options.allow_invalid_label_value_in_selector or has_invalid_value(before.get("selector"))
        options.allow_invalid_label_value_in_selector = lax
        return errs + validate_daemon_set_spec(spec, options, lax=lax)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return [] if template_generation(obj) == template_generation(old) else self.template_warnings(obj)
