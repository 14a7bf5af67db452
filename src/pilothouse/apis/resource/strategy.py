"""Device classes, resource claims and their templates, resource slices and taint rules.

Who may write which part of a claim's status is decided by authorization, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME, age_of
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.claims import validate_template_metadata
from pilothouse.apis.faults import Faults, declare_name
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.object_names import name_is_declared
from pilothouse.apis.resource.admin_access import check_requests, check_results
from pilothouse.apis.resource.claim_validation import validate_claim_spec, validate_configuration, validate_selectors
from pilothouse.apis.resource.formats import (
    check_declared_extended_name,
    check_driver,
    check_label,
    check_pool,
    declare_limit,
)
from pilothouse.apis.resource.pool_status import PoolStatusRequestStrategy
from pilothouse.apis.resource.slice_validation import validate_slice, validate_taint
from pilothouse.apis.resource.status_validation import allocated_devices, device_key, validate_claim_status
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.machinery import times
from pilothouse.machinery.field_errors import FieldError, Path, invalid, too_many
from pilothouse.machinery.go_quote import quote

_SPEC: Final = Path("spec")
_CONFIG_LIMIT: Final = 32
_CONDITIONS_LIMIT: Final = 8
_FRACTIONS: Final = "DRAFractionalCapacityRange"


def default_claim(spec: Object, status: Object | None = None) -> None:
    """Requests and alternatives are for one device, tolerations for equal values, unless they say otherwise."""
    for one in _requests(spec):
        if not one.get("allocationMode"):
            one["allocationMode"] = "ExactCount"
        if one["allocationMode"] == "ExactCount" and not one.get("count"):
            one["count"] = 1
    for holder in [*_requests(spec), *_results(status or {})]:
        for toleration in holder.get("tolerations") or ():
            if not toleration.get("operator"):
                toleration["operator"] = "Equal"


def _requests(spec: Object) -> list[Object]:
    requests = (spec.get("devices") or {}).get("requests") or ()
    exact = [request["exactly"] for request in requests if request.get("exactly") is not None]
    return exact + [one for request in requests for one in request.get("firstAvailable") or ()]


class ClaimStatusStrategy(ResettingStatusStrategy):
    """Allocation, use and state of a claim's devices. Devices that are given back lose their state."""

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"], obj.get("status"))

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        status, before = obj.get("status") or {}, old.get("status") or {}
        lost = allocated_devices(before) - allocated_devices(status)
        devices = [device for device in status.get("devices") or () if device_key(device) not in lost]
        if devices:
            status["devices"] = devices
        else:
            status.pop("devices", None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        return check_results(status, before, ctx.namespace, self.labels_of) + validate_claim_status(obj, old)


def _results(status: Object) -> list[Object]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _state(obj: Object) -> str:
    status, deleted = obj.get("status") or {}, obj["metadata"].get("deletionTimestamp")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


class ClaimStrategy(StatusKeeper):
    """Resource claims: the spec never changes."""

    judges_prefix_on_update = True
    returns_deleted = True
    type_name = "resource.v1.ResourceClaim"
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ClaimStatusStrategy}
    columns = (
        NAME,
        Column(
            "State",
            "string",
            _state,
            description="A summary of the current state (allocated, pending, reserved, etc.).",
        ),
        AGE,
    )

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"], obj.get("status"))

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        faults = Faults()
        validate_claim_spec(obj["spec"], _SPEC, faults, self.gates)
        return check_requests(obj["spec"], ctx.namespace, self.labels_of) + faults.listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        faults = Faults()
        faults.keep_declared(_SPEC, obj["spec"], None if ctx.raw_changed else old["spec"])
        return faults.listed()


class ClaimTemplateStrategy(Strategy):
    """Templates of resource claims: the spec never changes."""

    judges_prefix_on_update = True
    returns_deleted = True
    columns = (NAME, AGE)

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"]["spec"])

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return check_requests(obj["spec"]["spec"], ctx.namespace, self.labels_of) + self._faults(obj).listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        faults = self._faults(obj)
        if ctx.raw_changed or obj["spec"] != old["spec"]:
            shown = internal_form("resource.v1.ResourceClaimTemplateSpec", obj["spec"])
            faults.errors.append(invalid(_SPEC, shown, IMMUTABLE))
        return faults.listed()

    def _faults(self, obj: Object) -> Faults:
        faults = Faults()
        validate_template_metadata(obj["spec"].get("metadata", {}), _SPEC.child("metadata"), faults.errors)
        validate_claim_spec(obj["spec"]["spec"], _SPEC.child("spec"), faults, self.gates)
        return faults


class DeviceClassStrategy(Strategy):
    """Device classes."""

    validate_name = staticmethod(name_is_declared)
    returns_deleted = True
    generation = True
    columns = (NAME, AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        faults = Faults()
        declare_name(obj["metadata"], faults.declared)
        return _class_faults(obj["spec"], {}, faults)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _class_faults(obj["spec"], old["spec"], Faults())


def _class_faults(spec: Object, old: Object, faults: Faults) -> list[FieldError]:
    if spec.get("selectors") != old.get("selectors"):
        validate_selectors(spec.get("selectors") or [], _SPEC.child("selectors"), faults)
    config, where = spec.get("config") or [], _SPEC.child("config")
    if declare_limit(config, _CONFIG_LIMIT, where, faults):
        for position, one in enumerate(config):
            validate_configuration(one, where.index(position), faults, stored=config == old.get("config"))
    name = spec.get("extendedResourceName")
    if name is not None and name != old.get("extendedResourceName"):
        check_declared_extended_name(name, _SPEC.child("extendedResourceName"), faults.declared)
    return faults.listed()


def _stamp(taints: Any) -> None:
    for taint in taints or ():
        if not taint.get("timeAdded"):
            taint["timeAdded"] = times.now()


_SLICE_FIELDS: Final = {
    "spec.nodeName": ("nodeName",),
    "spec.driver": ("driver",),
    "spec.pool.name": ("pool", "name"),
}


class SliceStrategy(Strategy):
    """Resource slices."""

    returns_deleted = True
    generation = True
    counts_gated = True
    field_labels = frozenset(_SLICE_FIELDS)
    columns = (
        NAME,
        Column(
            "Node",
            "string",
            lambda o: o["spec"].get("nodeName", ""),
            description=Doc("resource.v1.ResourceSliceSpec", "nodeName"),
        ),
        Column(
            "Driver",
            "string",
            lambda o: o["spec"].get("driver", ""),
            description=Doc("resource.v1.ResourceSliceSpec", "driver"),
        ),
        Column(
            "Pool",
            "string",
            lambda o: (o["spec"].get("pool") or {}).get("name", ""),
            description=Doc("resource.v1.ResourcePool", "name"),
        ),
        AGE,
    )

    def fields(self, obj: Object) -> dict[str, str]:
        spec = obj["spec"]
        pool = (spec.get("pool") or {}).get("name", "")
        return {
            "spec.nodeName": spec.get("nodeName") or "",
            "spec.driver": spec.get("driver", ""),
            "spec.pool.name": pool,
        }

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name == "metadata.name" or name in self.field_labels:
            return name, value
        raise ValueError(f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}")

    def default(self, obj: Object) -> None:
        for device in obj["spec"].get("devices") or ():
            _stamp(device.get("taints"))

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_slice(obj, fractions=_FRACTIONS in self.gates)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_slice(obj, old, fractions=_FRACTIONS in self.gates)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"]

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)


class TaintRuleStatusStrategy(ResettingStatusStrategy):
    """How far a rule's evictions are."""

    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        _stamp([obj["spec"]["taint"]])

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        conditions, path = (obj.get("status") or {}).get("conditions") or (), Path("status", "conditions")
        validate_conditions(conditions, path, errs)
        if len(conditions) > _CONDITIONS_LIMIT:
            errs.append(too_many(path, len(conditions), _CONDITIONS_LIMIT))
        return errs


def _taint(name: str) -> Any:
    def cell(obj: Object) -> Any:
        return obj["spec"]["taint"].get(name, "")

    return cell


def _added(obj: Object) -> str:
    added = obj["spec"]["taint"].get("timeAdded")
    return age_of(added) if added else ""


class TaintRuleStrategy(StatusKeeper):
    """Rules that taint devices. A changed effect counts from now on."""

    type_name = "resource.v1.DeviceTaintRule"
    generation = True
    allow_unconditional_update = False
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": TaintRuleStatusStrategy}
    columns = (
        NAME,
        Column("Key", "string", _taint("key"), description=Doc("resource.v1.DeviceTaint", "key")),
        Column("Value", "string", _taint("value"), description=Doc("resource.v1.DeviceTaint", "value")),
        Column("Effect", "string", _taint("effect"), description=Doc("resource.v1.DeviceTaint", "effect")),
        Column("TimeAdded", "string", _added, description=Doc("resource.v1.DeviceTaint", "timeAdded")),
        AGE,
    )

    def default(self, obj: Object) -> None:
        _stamp([obj["spec"]["taint"]])

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        taint, before = obj["spec"]["taint"], old["spec"]["taint"]
        if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
            taint["timeAdded"] = ctx.now

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _taint_faults(obj["spec"], None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _taint_faults(obj["spec"], old["spec"])


def _taint_faults(spec: Object, old: Object | None) -> list[FieldError]:
    faults = Faults()
    selector, where = spec.get("deviceSelector") or {}, _SPEC.child("deviceSelector")
    for name, check in (("driver", check_driver), ("pool", check_pool), ("device", check_label)):
        if selector.get(name) is not None:
            check(selector[name], where.child(name), faults.errors)
    validate_taint(spec["taint"], _SPEC.child("taint"), faults, old["taint"] if old is not None else None)
    return faults.listed()


STRATEGIES: dict[str, type[Strategy]] = {
    "deviceclasses": DeviceClassStrategy,
    "devicetaintrules": TaintRuleStrategy,
    "resourceclaims": ClaimStrategy,
    "resourceclaimtemplates": ClaimTemplateStrategy,
    "resourceslices": SliceStrategy,
    "resourcepoolstatusrequests": PoolStatusRequestStrategy,
}
