"""CSI nodes: which drivers a node has, and how they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import check_condition_reason
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.storage.formats import validate_driver_name, well_formed_key
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules, UpdateRules
from pilothouse.apis.validation import non_negative, one_of
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from pilothouse.machinery.objects import Object

_SPEC = Path("spec")
_NODE_ID_LIMIT = 256
_HEALTH_CONDITIONS_LIMIT = 16
CSI_NODE_COLUMNS = (
    NAME,
    Column(
        "Drivers",
        "integer",
        lambda o: len(o["spec"].get("drivers") or ()),
        description="Drivers indicates the number of CSI drivers registered on the node",
    ),
    AGE,
)


def validate_node(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a CSI node: a driver's entry keeps all but what it can allocate."""
    errs: list[FieldError] = []
    seen: set[str] = set()
    drivers = obj["spec"].get("drivers") or ()
    for position, driver in enumerate(drivers):
        _validate_node_driver(driver, seen, _SPEC.child("drivers").index(position), errs)
    if old is not None:
        _keep_drivers(drivers, old["spec"].get("drivers") or (), errs)
    return errs


def _keep_drivers(drivers: Sequence[Object], old: Sequence[Object], errs: list[FieldError]) -> None:
    named: dict[str, list[Object]] = {}
    for driver in drivers:
        named.setdefault(driver.get("name", ""), []).append(driver)
    for before in old:
        for driver in named.get(before.get("name", ""), ()):
            if _kept_part(driver) != _kept_part(before):
                kept = driver.copy()
                kept.pop("allocatable", None)
                shown = internal_form("storage.v1.CSINodeDriver", kept)
                errs.append(invalid(_SPEC.child("drivers"), shown, IMMUTABLE))


def _kept_part(driver: Object) -> Object:
    """All but the allocatable; no topology keys and an empty list of them are the same."""
    return {key: value for key, value in driver.items() if key != "allocatable" and value}


def _validate_node_driver(driver: Object, seen: set[str], path: Path, errs: list[FieldError]) -> None:
    name, node_id = driver.get("name", ""), driver.get("nodeID", "")
    validate_driver_name(name, path.child("name"), errs)
    if not node_id:
        errs.append(required(path.child("nodeID")))
    if len(node_id.encode()) > _NODE_ID_LIMIT:
        errs.append(invalid(path.child("nodeID"), node_id, f"must be {_NODE_ID_LIMIT} characters or less"))
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None:
        non_negative(count, path.child("allocatable"), "count", errs)
    if name in seen:
        errs.append(duplicate(path.child("name"), name))
    seen.add(name)
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        if not key:
            errs.append(required(path))
        if key in keys:
            errs.append(duplicate(path, key))
        keys.add(key)
        well_formed_key(key, path, errs)


def validate_node_status(obj: Object) -> list[FieldError]:
    """Errors of the health that a CSI node's status reports."""
    errs: list[FieldError] = []
    seen: set[str] = set()
    for position, health in enumerate((obj.get("status") or {}).get("storageHealth") or ()):
        path = Path("status", "storageHealth").index(position)
        name = health.get("name", "")
        if name in seen:
            errs.append(duplicate(path, name))
        seen.add(name)
        validate_driver_name(name, path.child("name"), errs)
        conditions = health.get("healthConditions") or ()
        if len(conditions) > _HEALTH_CONDITIONS_LIMIT:
            errs.append(too_many(path.child("healthConditions"), len(conditions), _HEALTH_CONDITIONS_LIMIT))
            continue
        for at, condition in enumerate(conditions):
            _validate_health(condition, path.child("healthConditions").index(at), errs)
    return errs


def _validate_health(condition: Object, path: Path, errs: list[FieldError]) -> None:
    one_of(condition.get("status", ""), ("StorageDegraded", "StorageUnreachable"), path, "status", errs)
    reason = condition.get("reason", "")
    if not reason:
        errs.append(required(path.child("reason")))
    else:
        errs += (invalid(path.child("reason"), reason, m) for m in check_condition_reason(reason))
        if len(reason.encode()) > 256:
            errs.append(too_long(path.child("reason"), reason, 256))
    if len(condition.get("message", "").encode()) > 1024:
        errs.append(too_long(path.child("message"), "", 1024))
    modes = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    if condition.get("accessMode") is not None and condition["accessMode"] not in modes:
        errs.append(not_supported(path.child("accessMode"), condition["accessMode"], modes))
    if condition.get("volumeMode") is not None and condition["volumeMode"] not in ("Filesystem", "Block"):
        errs.append(not_supported(path.child("volumeMode"), condition["volumeMode"], ("Filesystem", "Block")))


class CSINodeStatusStrategy(ResettingStatusStrategy):
    """The health that a CSI node reports."""

    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_node_status(obj)


class CSINodeStrategy(StatusKeeper):
    """CSI nodes."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    type_name = "storage.v1.CSINode"
    update_rules = UpdateRules(allow_unconditional=False)
    deletion_rules = DeletionRules(returns_deleted=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": CSINodeStatusStrategy}
    columns = CSI_NODE_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_node(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_node(obj, old)
