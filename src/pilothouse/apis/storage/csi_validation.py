"""What makes CSI drivers and CSI nodes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.apis.conditions import check_condition_reason
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.storage.validation import validate_driver_name, well_formed_key
from pilothouse.apis.validating import non_negative, one_of
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

Object = dict[str, Any]
_SPEC = Path("spec")
_TOKEN_LEAST = 600
_TOKEN_MOST = 1 << 32
_NODE_ID_LIMIT = 256
_HEALTH_CONDITIONS_LIMIT = 16
_ALWAYS_SET = (
    ("attachRequired", "attachedRequired"),
    ("podInfoOnMount", "podInfoOnMount"),
    ("storageCapacity", "storageCapacity"),
)


def validate_driver(obj: Object, old: Object | None = None, *, limits_scale: bool = True) -> list[FieldError]:
    """Faults of a CSI driver."""
    spec = obj["spec"]
    errs = [required(_SPEC.child(shown)) for name, shown in _ALWAYS_SET if spec.get(name) is None]
    if spec.get("fsGroupPolicy") is not None:
        one_of(spec["fsGroupPolicy"], ("File", "None", "ReadWriteOnceWithFSType"), _SPEC, "fsGroupPolicy", errs)
    requests = spec.get("tokenRequests") or ()
    _validate_token_requests(requests, _SPEC.child("tokenRequests"), errs)
    for mode in spec.get("volumeLifecycleModes") or ():
        one_of(mode, ("Persistent", "Ephemeral"), _SPEC, "volumeLifecycleModes", errs)
    if spec.get("seLinuxMount") is None:
        errs.append(required(_SPEC.child("seLinuxMount")))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        why = "must be greater than or equal to 10 seconds"
        errs.append(invalid(_SPEC.child("nodeAllocatableUpdatePeriodSeconds"), period, why))
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errs.append(invalid(_SPEC.child("serviceAccountTokenInSecrets"), secret, why))
    if limits_scale and spec.get("preventPodSchedulingIfMissing") is None:
        errs.append(required(_SPEC.child("preventPodSchedulingIfMissing")))
    if old is not None:
        _keep_driver(spec, old["spec"], errs)
    return errs


def _keep_driver(spec: Object, old: Object, errs: list[FieldError]) -> None:
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != old.get(name):
            errs.append(invalid(_SPEC.child(shown), spec.get(name), IMMUTABLE))


def _validate_token_requests(requests: Any, path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for position, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            errs.append(duplicate(path.index(position).child("audience"), audience))
            continue
        seen.add(audience)
        if seconds is None:
            continue
        where = path.index(position).child("expirationSeconds")
        if seconds < _TOKEN_LEAST:
            errs.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
        if seconds > _TOKEN_MOST:
            errs.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))


def validate_node(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a CSI node: a driver's entry keeps all but what it can allocate."""
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
    """Faults of the health that a CSI node's status reports."""
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
