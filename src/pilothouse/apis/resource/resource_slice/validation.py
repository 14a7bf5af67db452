"""What makes resource slices wrong: the pool they describe and the devices in it."""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.affinity import validate_node_selector
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.resource.formats import (
    DRIVER_LIMIT,
    ID_LIMIT,
    check_declared_label,
    check_driver,
    check_label,
    check_pool,
    check_qualified_name,
    declare_limit,
    declare_unique,
    shorten,
)
from pilothouse.apis.resource.resource_claim.status_validation import validate_binding
from pilothouse.apis.resource.resource_claim.validation import TAINT_EFFECTS
from pilothouse.apis.resource.resource_slice.capacity_validation import validate_policy
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    as_json,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

_SPEC: Final = Path("spec")
_DEVICES_LIMIT: Final = 128
_ADVANCED_DEVICES_LIMIT: Final = 64
_TAINTS_LIMIT: Final = 16
_COUNTER_SETS_LIMIT: Final = 8
_COUNTERS_LIMIT: Final = 32
_CONSUMPTIONS_LIMIT: Final = 2
_ENTRIES_LIMIT: Final = 32
_VALUE_LIMIT: Final = 64
_KEY_LENGTH: Final = DRIVER_LIMIT + 1 + ID_LIMIT
_MEMBERS: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_PLACES: Final = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"


def validate_slice(obj: Object, old: Object | None = None, *, fractions: bool = False) -> list[FieldError]:
    """Errors of a slice: driver, pool and node never change. ``fractions``: whether capacity may be asked in parts."""
    errs = ErrorList()
    spec, before = obj["spec"], old["spec"] if old is not None else None
    pool = spec.get("pool") or {}
    check_driver(spec.get("driver", ""), _SPEC.child("driver"), errs.errors)
    check_pool(pool.get("name", ""), _SPEC.child("pool", "name"), errs.errors)
    _validate_counts(pool, _SPEC.child("pool"), errs.errors)
    if before is not None:
        had = (before.get("pool") or {}).get("name", "")
        if pool.get("name", "") != had:
            errs.errors.append(invalid(_SPEC.child("pool", "name"), pool.get("name", ""), IMMUTABLE))
        if spec.get("driver") != before.get("driver"):
            errs.errors.append(invalid(_SPEC.child("driver"), spec.get("driver"), IMMUTABLE))
        if spec.get("nodeName") != before.get("nodeName"):
            errs.errors.append(invalid(_SPEC.child("nodeName"), as_json(spec.get("nodeName")), IMMUTABLE))
    _validate_places(spec, errs.errors)
    if as_given(spec, "sharedCounters") is not None and as_given(spec, "devices") is not None:
        errs.errors.append(invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    _validate_devices(spec, before, errs, fractions)
    _validate_counter_sets(spec.get("sharedCounters") or [], _SPEC.child("sharedCounters"), errs)
    return errs.listed()


def _validate_counts(pool: Object, path: Path, errs: list[FieldError]) -> None:
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errs.append(invalid(path.child("resourceSliceCount"), count, "must be greater than zero"))
    if generation < 0:
        errs.append(invalid(path.child("generation"), generation, "must be greater than or equal to zero"))


def _validate_places(spec: Object, errs: list[FieldError]) -> None:
    given = []
    if spec.get("nodeName") is not None:
        if spec["nodeName"]:
            given.append("`nodeName`")
            _check_node(spec["nodeName"], _SPEC.child("nodeName"), errs)
        else:
            errs.append(invalid(_SPEC.child("nodeName"), "", "must be either unset or set to a non-empty string"))
    selector = spec.get("nodeSelector")
    if selector is not None:
        given.append("`nodeSelector`")
        where = _SPEC.child("nodeSelector")
        validate_node_selector(selector, where, errs)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = internal_form("core.v1.NodeSelectorTerm", terms)
            errs.append(invalid(where.child("nodeSelectorTerms"), shown, "must have exactly one node selector term"))
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(f"`{name}`")
        elif spec.get(name) is not None:
            errs.append(invalid(_SPEC.child(name), False, "must be either unset or set to true"))
    if not given:
        errs.append(required(_SPEC, f"exactly one of {_PLACES} is required"))
    elif len(given) > 1:
        why = f"exactly one of {_PLACES} is required, but multiple fields are set"
        errs.append(invalid(_SPEC, f"{{{', '.join(given)}}}", why))


def _check_node(name: str, path: Path, errs: list[FieldError]) -> None:
    errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain(name))


def _validate_devices(spec: Object, before: Object | None, errs: ErrorList, fractions: bool) -> None:
    devices, path = spec.get("devices") or [], _SPEC.child("devices")
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    limit = _ADVANCED_DEVICES_LIMIT if advanced else _DEVICES_LIMIT
    if len(devices) > limit:
        errs.errors.append(too_many(path, len(devices), limit))
        return
    had = {device.get("name", ""): device for device in (before or {}).get("devices") or ()}
    for position, device in enumerate(devices):
        _validate_device(device, had.get(device.get("name", "")), spec, path.index(position), errs, fractions)
    seen: set[str] = set()
    for position, device in enumerate(devices):
        name = device.get("name", "")
        if name in seen:
            errs.errors.append(duplicate(path.index(position), name))
        seen.add(name)


def _validate_device(
    device: Object, old: Object | None, spec: Object, path: Path, errs: ErrorList, fractions: bool
) -> None:
    check_label(device.get("name", ""), path.child("name"), errs.errors)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _ENTRIES_LIMIT:
        why = f"the total number of attributes and capacities must not exceed {_ENTRIES_LIMIT}"
        errs.errors.append(invalid(path, len(attributes) + len(capacity), why))
    for name, attribute in attributes.items():
        check_qualified_name(name, path.child("attributes"), errs.errors)
        _validate_attribute(attribute, path.child("attributes").key(shorten(name, _KEY_LENGTH)), errs)
    if old is None or old.get("capacity") != device.get("capacity"):
        _validate_capacity(device, path.child("capacity"), errs.errors, fractions)
    _validate_consumptions(device.get("consumesCounters") or [], path.child("consumesCounters"), errs)
    if old is None or old.get("taints") != device.get("taints"):
        _validate_taints(device.get("taints") or [], path.child("taints"), errs)
    _validate_device_place(device, bool(spec.get("perDeviceNodeSelection")), path, errs.errors)
    validate_binding(device, path, errs)


def _validate_attribute(attribute: Object, path: Path, errs: ErrorList) -> None:
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and len(text.encode()) > _VALUE_LIMIT:
        errs.errors.append(too_long(path.child("string"), "", _VALUE_LIMIT))
    if version is not None:
        if not _SEMVER.fullmatch(version):
            why = "must be a string compatible with semver.org spec 2.0.0"
            errs.errors.append(invalid(path.child("version"), version, why))
        if len(version.encode()) > _VALUE_LIMIT:
            errs.errors.append(too_long(path.child("version"), "", _VALUE_LIMIT))
    given = [f"{name}" for name in _MEMBERS if attribute.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in _MEMBERS)
    if not given:
        errs.declared.append(invalid(path, "", f"must specify one of: {listed}"))
    elif len(given) > 1:
        errs.declared.append(invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {listed}"))


def _validate_capacity(device: Object, path: Path, errs: list[FieldError], fractions: bool) -> None:
    shared = bool(device.get("allowMultipleAllocations"))
    for name, one in (device.get("capacity") or {}).items():
        check_qualified_name(name, path, errs)
        policy, where = one.get("requestPolicy"), path.key(shorten(name, _KEY_LENGTH)).child("requestPolicy")
        if policy is not None and not shared:
            errs.append(forbidden(where, "allowMultipleAllocations must be true"))
        elif policy is not None:
            validate_policy(one.get("value", "0"), policy, where, errs, fractions=fractions)


def _validate_taints(taints: list[Object], path: Path, errs: ErrorList) -> None:
    if len(taints) > _TAINTS_LIMIT:
        errs.errors.append(too_many(path, len(taints), _TAINTS_LIMIT))
        return
    for position, taint in enumerate(taints):
        validate_taint(taint, path.index(position), errs)


def validate_taint(taint: Object, path: Path, errs: ErrorList, old: Object | None = None) -> None:
    """A taint of devices."""
    key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
    errs.errors += (invalid(path.child("key"), key, message) for message in names.check_label_key(key))
    if value:
        errs.errors += (invalid(path.child("value"), value, message) for message in names.check_label_value(value))
    if old is None or old.get("effect", "") != effect:
        if not effect:
            errs.declared.append(required(path.child("effect")))
        elif effect not in TAINT_EFFECTS:
            errs.declared.append(not_supported(path.child("effect"), effect, TAINT_EFFECTS))


def _validate_consumptions(items: list[Object], path: Path, errs: ErrorList) -> None:
    if not declare_limit(items, _CONSUMPTIONS_LIMIT, path, errs):
        return
    kind = "resource.v1.DeviceCounterConsumption"
    declare_unique(items, lambda item: item.get("counterSet", ""), path, kind, errs)
    for position, item in enumerate(items):
        _validate_counters(item, "counterSet", path.index(position), errs)


def _validate_counter_sets(items: list[Object], path: Path, errs: ErrorList) -> None:
    if not declare_limit(items, _COUNTER_SETS_LIMIT, path, errs):
        return
    declare_unique(items, lambda item: item.get("name", ""), path, "resource.v1.CounterSet", errs)
    for position, item in enumerate(items):
        _validate_counters(item, "name", path.index(position), errs)


def _validate_counters(item: Object, key: str, path: Path, errs: ErrorList) -> None:
    name, counters, where = item.get(key, ""), item.get("counters") or {}, path.child("counters")
    if not name:
        errs.declared.append(required(path.child(key)))
    else:
        check_declared_label(name, path.child(key), errs.declared)
    if len(counters) > _COUNTERS_LIMIT:
        errs.errors.append(too_many(where, len(counters), _COUNTERS_LIMIT))
    if not counters:
        errs.declared.append(required(where))
    for counter in counters:
        check_declared_label(counter, where, errs.declared)


def _validate_device_place(device: Object, per_device: bool, path: Path, errs: list[FieldError]) -> None:
    node, selector, everywhere = (device.get(name) for name in ("nodeName", "nodeSelector", "allNodes"))
    if not per_device:
        if node is not None or selector is not None or everywhere is not None:
            why = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
                "in the ResourceSlice spec"
            )
            errs.append(invalid(path, None, why))
        return
    given = []
    if node:
        given.append("`nodeName`")
        _check_node(node, path.child("nodeName"), errs)
    elif node is not None:
        errs.append(invalid(path.child("nodeName"), node, "must not be empty"))
    if selector is not None:
        given.append("`nodeSelector`")
        validate_node_selector(selector, path.child("nodeSelector"), errs)
    if everywhere:
        given.append("`allNodes`")
    elif everywhere is not None:
        errs.append(invalid(path.child("allNodes"), everywhere, "must be either unset or set to true"))
    why = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not given:
        errs.append(required(path, why))
    elif len(given) > 1:
        errs.append(invalid(path, f"{{{', '.join(given)}}}", why))
