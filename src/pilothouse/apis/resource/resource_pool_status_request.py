"""Requests for the state of resource pools: asked once, answered once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.columns import NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.resource.formats import check_declared_full_name, check_declared_pool, declare_limit
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required, too_long
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_MOST: Final = 1000
_CONDITIONS_LIMIT: Final = 10
_COUNTS: Final = (
    ("resourceSliceCount", 1),
    ("totalDevices", 0),
    ("allocatedDevices", 0),
    ("availableDevices", 0),
    ("unavailableDevices", 0),
)


def validate_request(spec: Object) -> list[FieldError]:
    """Errors of a new request."""
    errs: list[FieldError] = []
    _check_driver(spec.get("driver", ""), _SPEC.child("driver"), errs)
    if spec.get("poolName") is not None:
        check_declared_pool(spec["poolName"], _SPEC.child("poolName"), errs)
    limit = spec.get("limit")
    if limit is None:
        errs.append(required(_SPEC.child("limit")))
    elif limit > _MOST:
        errs.append(invalid(_SPEC.child("limit"), limit, f"must be less than or equal to {_MOST}"))
    elif limit < 1:
        errs.append(invalid(_SPEC.child("limit"), limit, "must be greater than or equal to 1"))
    attribute = spec.get("defaultPartitionTypeAttribute")
    if attribute is not None:
        check_declared_full_name(attribute, _SPEC.child("defaultPartitionTypeAttribute"), errs)
    return errs


def _check_driver(name: str, path: Path, errs: list[FieldError]) -> None:
    if not name:
        errs.append(required(path))
    else:
        errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain_caseless(name))


def validate_answer(status: Object | None, old: Object | None) -> list[FieldError]:
    """Errors of an answer: it is given once."""
    if old is not None:
        shown = internal_form("resource.v1alpha3.ResourcePoolStatusRequestStatus", status)
        return [] if status == old else [invalid(_STATUS, shown, IMMUTABLE)]
    if status is None:
        return []
    errs = ErrorList()
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), errs.errors)
    count = status.get("poolCount")
    if count is None:
        errs.declared.append(required(_STATUS.child("poolCount")))
    elif count < 0:
        errs.declared.append(invalid(_STATUS.child("poolCount"), count, "must be greater than or equal to 0"))
    pools = status.get("pools") or []
    if declare_limit(pools, _MOST, _STATUS.child("pools"), errs):
        for position, pool in enumerate(pools):
            _validate_pool(pool, _STATUS.child("pools").index(position), errs.declared)
    declare_limit(status.get("conditions") or [], _CONDITIONS_LIMIT, _STATUS.child("conditions"), errs)
    return errs.listed()


def _validate_pool(pool: Object, path: Path, errs: list[FieldError]) -> None:
    _check_driver(pool.get("driver", ""), path.child("driver"), errs)
    check_declared_pool(pool.get("poolName", ""), path.child("poolName"), errs)
    generation = pool.get("generation", 0)
    if not generation:
        errs.append(required(path.child("generation")))
    elif generation < 0:
        errs.append(invalid(path.child("generation"), generation, "must be greater than or equal to 0"))
    for name, least in _COUNTS:
        value = pool.get(name)
        if value is not None and value < least:
            errs.append(invalid(path.child(name), value, f"must be greater than or equal to {least}"))
    node = pool.get("nodeName")
    if node is not None:
        errs += (invalid(path.child("nodeName"), node, message) for message in names.check_dns1123_subdomain(node))
    if len((pool.get("validationError") or "").encode()) > 256:
        errs.append(too_long(path.child("validationError"), "", 256))


class PoolStatusStrategy(ResettingStatusStrategy):
    """The answer."""

    update_rules = UpdateRules(allow_unconditional=False)

    def default(self, obj: Object) -> None:
        obj["spec"].setdefault("limit", 100)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_answer(obj.get("status"), old.get("status"))


def _done(obj: Object) -> Object | None:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return dict(condition)
    return None


def _sum(name: str) -> Any:
    def cell(obj: Object) -> str:
        done, status = _done(obj), obj.get("status")
        if status is None or (done or {}).get("type") == "Failed":
            return "-"
        pools = status.get("pools") or ()
        if name == "validationError":
            return str(sum(pool.get(name) is not None for pool in pools))
        return str(sum(pool.get(name) or 0 for pool in pools))

    return cell


def _count(obj: Object) -> int:
    return (obj.get("status") or {}).get("poolCount") or 0


def _state(obj: Object) -> str:
    done = _done(obj)
    shown = len((obj.get("status") or {}).get("pools") or ())
    if done is not None and done["type"] == "Complete" and _count(obj) > shown:
        return f"Complete ({shown}/{_count(obj)} pools)"
    return "Pending" if done is None else str(done["type"])


def _completed(obj: Object) -> Age | str:
    done = _done(obj)
    return age_of(done.get("lastTransitionTime")) if done is not None and done["type"] == "Complete" else "<none>"


class PoolStatusRequestStrategy(StatusKeeper):
    """Requests for the state of pools: the spec never changes."""

    deletion_rules = DeletionRules(returns_deleted=True)
    type_name = "resource.v1alpha3.ResourcePoolStatusRequest"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": PoolStatusStrategy}
    columns = (
        NAME,
        Column("Driver", "string", lambda o: o["spec"].get("driver", ""), description="The driver to query pools for."),
        Column("Total", "string", _sum("totalDevices"), description="Total number of devices across all pools."),
        Column(
            "Available", "string", _sum("availableDevices"), description="Number of available devices across all pools."
        ),
        Column(
            "Allocated", "string", _sum("allocatedDevices"), description="Number of allocated devices across all pools."
        ),
        Column(
            "Unavailable",
            "string",
            _sum("unavailableDevices"),
            description="Number of unavailable devices across all pools.",
        ),
        Column("Errors", "string", _sum("validationError"), description="Number of pools with validation errors."),
        Column("Pools", "integer", _count, description="Total number of matching pools."),
        Column("Status", "string", _state, description="Processing status."),
        Column("Completed", "string", _completed, description="Time since the observation completed."),
    )

    def default(self, obj: Object) -> None:
        obj["spec"].setdefault("limit", 100)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_request(obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = ErrorList()
        errs.keep_declared(_SPEC, obj["spec"], old["spec"])
        return errs.listed()
