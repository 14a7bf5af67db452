"""ResourceQuotas: limits of a namespace, scopes that fit them, and what a status may report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.resource_names import (
    check_quantity,
    check_quota_resource_name,
    is_quota_resource,
    round_up_resources,
)
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules
from pilothouse.machinery import quantity
from pilothouse.machinery.field_errors import FieldError, Named, Path, invalid, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_SCOPES: Final = frozenset(
    {
        "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "VolumeAttributesClass",
        "CrossNamespacePodAffinity",
    }
)  # fmt: skip
_COMPUTE: Final = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_SCOPED: Final = {
    **dict.fromkeys(("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass"), _COMPUTE),
    "CrossNamespacePodAffinity": _COMPUTE,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_BARE_SCOPES: Final = frozenset(
    {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"}
)
_CONFLICTS: Final = (frozenset({"BestEffort", "NotBestEffort"}), frozenset({"Terminating", "NotTerminating"}))
_WHOLE_SCOPES: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_REQUESTS: Final = "Request represents a minimum amount of cpu/memory that a container may consume."
_LIMITS: Final = (
    "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."
)


def _usage(obj: Object, *, limits: bool) -> str:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown = (name for name in sorted(hard) if name.startswith("limits.") == limits)
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in shown)


class ResourceQuotaStatusStrategy(StatusStrategy):
    """``/status``: written by the quota controller and by admission."""

    def default(self, obj: Object) -> None:
        default_quota(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        if not obj["metadata"].get("resourceVersion"):
            errs.append(required(Path("resourceVersion"), ""))
        return errs + _check_status(obj.get("status") or {})


class ResourceQuotaStrategy(Strategy):
    """Scopes are fixed when the quota is made."""

    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ResourceQuotaStatusStrategy}
    reset_fields = ("status",)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns = (
        NAME,
        Column("Request", "string", lambda obj: _usage(obj, limits=False), description=_REQUESTS),
        Column("Limit", "string", lambda obj: _usage(obj, limits=True), description=_LIMITS),
        AGE,
    )

    def default(self, obj: Object) -> None:
        default_quota(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _check_spec(obj.get("spec") or {}) + _check_status(obj.get("status") or {})

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        errs = _check_spec(spec)
        if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
            errs.append(invalid(_SPEC.child("scopes"), spec.get("scopes"), IMMUTABLE))
        return errs

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        hard = (obj.get("spec") or {}).get("hard") or {}
        warnings = []
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            request, limit = f"requests.{name}", f"limits.{name}"
            if request not in hard and name in ("cpu", "memory"):
                request = name
            if request in hard and limit in hard and quantity.parse(hard[request]) > quantity.parse(hard[limit]):
                less, more = f"{request} ({hard[request]})", f"{limit} ({hard[limit]})"
                warnings.append(f"ResourceQuota {less} should be less than {more}")
        return warnings


def default_quota(obj: Object) -> None:
    """Amounts are kept to a thousandth."""
    round_up_resources((obj.get("spec") or {}).get("hard"))
    for key in ("hard", "used"):
        round_up_resources((obj.get("status") or {}).get(key))


def _check_amounts(path: Path, amounts: dict[str, str] | None) -> list[FieldError]:
    errs: list[FieldError] = []
    for name, text in (amounts or {}).items():
        errs += check_quota_resource_name(path.key(name), name)
        errs += check_quantity(path.key(name), name, text)
    return errs


def _check_status(status: dict[str, Any]) -> list[FieldError]:
    errs = _check_amounts(_STATUS.child("hard"), status.get("hard"))
    return errs + _check_amounts(_STATUS.child("used"), status.get("used"))


def _check_spec(spec: dict[str, Any]) -> list[FieldError]:
    errs = _check_amounts(_SPEC.child("hard"), spec.get("hard"))
    if spec.get("scopes"):
        errs += _check_scopes(spec, spec["scopes"])
    if spec.get("scopeSelector") is not None:
        errs += _check_selector(spec, spec["scopeSelector"])
    return errs


def _unfit_counts(spec: dict[str, Any]) -> dict[str, int]:
    """How many of the limited resources each scope says nothing about; counted once, however often scopes are named."""
    limited = [name for name in spec.get("hard") or () if is_quota_resource(name)]
    return {scope: sum(name not in fitting for name in limited) for scope, fitting in _SCOPED.items()}


def _check_scopes(spec: dict[str, Any], scopes: list[str]) -> list[FieldError]:
    path = _SPEC.child("scopes")
    errs: list[FieldError] = []
    unfit = _unfit_counts(spec)
    for scope in scopes:
        if scope not in _SCOPES:
            errs.append(invalid(path, scopes, "unsupported scope"))
        errs += [invalid(path, scopes, "unsupported scope applied to resource")] * unfit.get(scope, 0)
    return errs + _check_conflicts(path, set(scopes), scopes)


def _check_selector(spec: dict[str, Any], selector: dict[str, Any]) -> list[FieldError]:
    path = _SPEC.child("scopeSelector", "matchExpressions")
    errs: list[FieldError] = []
    unfit, shown = _unfit_counts(spec), internal_form("core.v1.ScopeSelector", selector)
    scopes = set()
    for term in selector.get("matchExpressions") or ():
        scope, operator, values = term.get("scopeName", ""), term.get("operator", ""), term.get("values") or []
        scopes.add(scope)
        if scope not in _SCOPES:
            errs.append(invalid(path.child("scopeName"), Named(scope), "unsupported scope"))
        errs += [invalid(path, shown, "unsupported scope applied to resource")] * unfit.get(scope, 0)
        if scope in _BARE_SCOPES and operator != "Exists":
            errs.append(invalid(path.child("operator"), Named(operator), _WHOLE_SCOPES))
        errs += _check_operator(path, operator, values)
    return errs + _check_conflicts(path, scopes, spec.get("scopes"))


def _check_operator(path: Path, operator: str, values: list[str]) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [required(path.child("values"), why)]
    if operator in ("Exists", "DoesNotExist"):
        why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid(path.child("values"), values, why)] if values else []
    return [invalid(path.child("operator"), Named(operator), "not a valid selector operator")]


def _check_conflicts(path: Path, scopes: set[str], shown: Any) -> list[FieldError]:
    return [invalid(path, shown, "conflicting scopes") for pair in _CONFLICTS if pair <= scopes]
