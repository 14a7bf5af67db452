"""What makes the status of a resource claim wrong: what was allocated, who uses it, and how the devices are."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.pod_spec.affinity import validate_node_selector
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.resource.formats import (
    check_declared_driver,
    check_declared_pool,
    check_driver,
    check_label,
    check_pool,
    check_uuid,
    declare_limit,
    declare_unique,
)
from pilothouse.apis.resource.resource_claim.validation import (
    RequestNames,
    request_names,
    validate_configuration,
    validate_raw,
    validate_request_ref,
    validate_request_refs,
    validate_toleration,
)
from pilothouse.apis.validation import repeats
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from pilothouse.machinery.objects import Object

_STATUS: Final = Path("status")
_CONSUMERS_LIMIT: Final = 256
_RESULTS_LIMIT: Final = 32
_CONFIG_LIMIT: Final = 64
_CONDITIONS_LIMIT: Final = 8
_DATA_LIMIT: Final = 10 * 1024
_BINDING_LIMIT: Final = 4
_ADDRESSES_LIMIT: Final = 16


def device_key(device: Object) -> tuple[str, str, str, str]:
    """What identifies an allocated device, or a share of one."""
    driver, pool, name = (device.get(key, "") for key in ("driver", "pool", "device"))
    return driver, pool, name, device.get("shareID") or ""


def allocated_devices(status: Object) -> set[tuple[str, str, str, str]]:
    """The devices that a claim holds."""
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {device_key(result) for result in devices.get("results") or ()}


def validate_claim_status(obj: Object, old: Object) -> list[FieldError]:
    """Errors of a changed status: an allocation is made and dropped, never changed."""
    errs = ErrorList()
    status, before = obj.get("status") or {}, old.get("status") or {}
    allocation, had = status.get("allocation"), before.get("allocation")
    _validate_allocation(allocation, had, request_names(obj["spec"]), errs)
    later, errs.errors = errs.errors, []
    consumers = status.get("reservedFor") or []
    _validate_consumers(consumers, _STATUS.child("reservedFor"), errs)
    _validate_devices(status, errs)
    if consumers:
        where = _STATUS.child("reservedFor")
        if allocation is None:
            errs.errors.append(forbidden(where, "may not be specified when `allocated` is not set"))
        elif obj["metadata"].get("deletionTimestamp") and any(
            c not in (before.get("reservedFor") or ()) for c in consumers
        ):
            why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errs.errors.append(forbidden(where, why))
    errs.errors += later
    return errs.listed()


def _validate_allocation(allocation: Object | None, had: Object | None, known: RequestNames, errs: ErrorList) -> None:
    path = _STATUS.child("allocation")
    if allocation is None or allocation == had:
        return
    if had is not None:
        errs.declared.append(invalid(path, None, "field cannot be modified once set"))
        return
    devices, where = allocation.get("devices") or {}, path.child("devices")
    results = devices.get("results") or []
    if declare_limit(results, _RESULTS_LIMIT, where.child("results"), errs):
        for position, result in enumerate(results):
            _validate_result(result, known, where.child("results").index(position), errs)
    config = devices.get("config") or []
    if declare_limit(config, _CONFIG_LIMIT, where.child("config"), errs):
        for position, one in enumerate(config):
            _validate_config(one, known, where.child("config").index(position), errs)
    if allocation.get("nodeSelector") is not None:
        validate_node_selector(allocation["nodeSelector"], path.child("nodeSelector"), errs.errors)


def _validate_config(config: Object, known: RequestNames, path: Path, errs: ErrorList) -> None:
    source = config.get("source", "")
    if not source:
        errs.declared.append(required(path.child("source")))
    elif source not in ("FromClaim", "FromClass"):
        errs.declared.append(not_supported(path.child("source"), source, ("FromClaim", "FromClass")))
    validate_request_refs(config.get("requests") or [], known, path.child("requests"), errs)
    validate_configuration(config, path, errs)


def _validate_result(result: Object, known: RequestNames, path: Path, errs: ErrorList) -> None:
    validate_request_ref(result.get("request", ""), known, path.child("request"), errs.errors)
    check_declared_driver(result.get("driver", ""), path.child("driver"), errs.declared)
    check_declared_pool(result.get("pool", ""), path.child("pool"), errs.declared)
    check_label(result.get("device", ""), path.child("device"), errs.errors)
    tolerations = ErrorList()
    for position, toleration in enumerate(result.get("tolerations") or ()):
        validate_toleration(toleration, path.child("tolerations").index(position), tolerations)
    errs.declared += tolerations.declared
    validate_binding(result, path, errs)
    errs.errors += tolerations.errors
    if result.get("shareID") is not None:
        check_uuid(result["shareID"], path.child("shareID"), errs.declared)


def validate_binding(device: Object, path: Path, errs: ErrorList) -> None:
    """Conditions that must hold, and those that must not, before a pod is bound to a node."""
    wanted, feared = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    for name, items in (("bindingConditions", wanted), ("bindingFailureConditions", feared)):
        if declare_limit(items, _BINDING_LIMIT, path.child(name), errs):
            for at, item in enumerate(items):
                place = path.child(name).index(at)
                errs.errors += (invalid(place, item, message) for message in names.check_label_key(item))
    where = path.child("bindingConditions")
    errs.errors += (duplicate(where.index(at), wanted[at]) for at in sorted(repeats(wanted)))
    where = path.child("bindingFailureConditions")
    twice, both = repeats(feared), set(wanted)
    for at, item in enumerate(feared):
        if at in twice:
            errs.errors.append(duplicate(where.index(at), item))
        if item in both:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            errs.errors.append(invalid(where.index(at), item, why))
    if not wanted and feared:
        why = "bindingConditions are required to use bindingFailureConditions"
        errs.errors.append(invalid(path.child("bindingConditions"), device.get("bindingConditions"), why))
    if wanted and not feared:
        why = "bindingFailureConditions are required to use bindingConditions"
        errs.errors.append(invalid(where, device.get("bindingFailureConditions"), why))


def _validate_consumers(consumers: list[Object], path: Path, errs: ErrorList) -> None:
    if not declare_limit(consumers, _CONSUMERS_LIMIT, path, errs):
        return
    kind = "resource.v1.ResourceClaimConsumerReference"
    declare_unique(consumers, lambda consumer: consumer.get("uid", ""), path, kind, errs)
    for position, consumer in enumerate(consumers):
        missing = [key for key in ("resource", "name", "uid") if not consumer.get(key)]
        errs.errors += (required(path.index(position).child(key)) for key in missing)


def _validate_devices(status: Object, errs: ErrorList) -> None:
    path, devices = _STATUS.child("devices"), status.get("devices") or []
    held = allocated_devices(status)
    declare_unique(devices, device_key, path, "resource.v1.AllocatedDeviceStatus", errs)
    for position, device in enumerate(devices):
        _validate_device(device, held, path.index(position), errs)


def _validate_device(device: Object, held: set[tuple[str, str, str, str]], path: Path, errs: ErrorList) -> None:
    check_driver(device.get("driver", ""), path.child("driver"), errs.errors)
    check_pool(device.get("pool", ""), path.child("pool"), errs.errors)
    check_label(device.get("device", ""), path.child("device"), errs.errors)
    if device.get("shareID") is not None:
        check_uuid(device["shareID"], path.child("shareID"), errs.declared)
    if device_key(device) not in held:
        shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(device), strict=True))
        errs.errors.append(invalid(path, shown, "must be an allocated device in the claim"))
    conditions = device.get("conditions") or ()
    if len(conditions) > _CONDITIONS_LIMIT:
        errs.errors.append(too_many(path.child("conditions"), len(conditions), _CONDITIONS_LIMIT))
    validate_conditions(conditions, path.child("conditions"), errs.errors)
    if device.get("data") is not None:
        validate_raw(device["data"], path.child("data"), _DATA_LIMIT, errs.errors)
    if device.get("networkData") is not None:
        _validate_network(device["networkData"], path.child("networkData"), errs)


def _validate_network(data: Object, path: Path, errs: ErrorList) -> None:
    if len(data.get("interfaceName", "").encode()) > 256:
        errs.declared.append(too_long(path.child("interfaceName"), "", 256))
    ips = data.get("ips") or []
    if declare_limit(ips, _ADDRESSES_LIMIT, path.child("ips"), errs):
        declare_unique(ips, str, path.child("ips"), "", errs)
        for position, ip in enumerate(ips):
            place = path.child("ips").index(position)
            errs.errors += (invalid(place, ip, message) for message in addresses.check_interface_address(ip))
    if len(data.get("hardwareAddress", "").encode()) > 128:
        errs.declared.append(too_long(path.child("hardwareAddress"), "", 128))
