"""Claims of devices, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.resource.admin_access import check_requests, check_results
from pilothouse.apis.resource.resource_claim.status_validation import (
    allocated_devices,
    device_key,
    validate_claim_status,
)
from pilothouse.apis.resource.resource_claim.validation import validate_claim_spec
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")


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

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
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
        errs = ErrorList()
        validate_claim_spec(obj["spec"], _SPEC, errs, self.gates)
        return check_requests(obj["spec"], ctx.namespace, self.labels_of) + errs.listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = ErrorList()
        errs.keep_declared(_SPEC, obj["spec"], None if ctx.raw_changed else old["spec"])
        return errs.listed()
