"""What makes a node valid, when created and when changed."""

from __future__ import annotations

import re
from typing import Any, Final

from pilothouse.apis.core.annotated import TAINT, AnnotationError, read_json, read_structs
from pilothouse.apis.core.checks import check_old_cidr, refusals
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.resource_names import check_quantity
from pilothouse.machinery import names
from pilothouse.machinery.addresses import parse_cidr
from pilothouse.machinery.field_errors import (
    DUPLICATE,
    FieldError,
    Path,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
)
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_METADATA: Final = Path("metadata")
_TAINTS_KEY: Final = "scheduler.alpha.kubernetes.io/taints"
_AVOID_KEY: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_ONE_REFERENCE: Final = "exactly one reference subfield must be non-nil"


def validate_node(obj: Object, *, strict: bool = True) -> list[FieldError]:
    """Errors of a node by itself."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    errs = _check_annotations(obj)
    if spec.get("taints"):
        errs += check_taints(_METADATA.child("taints"), spec["taints"])
    errs += _check_resources(status)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0:
        errs.append(invalid(_METADATA.child("nodeSwapStatus", "capacity"), swap, "must be greater than zero"))
    errs += _check_features(status)
    blocks = spec.get("podCIDRs") or []
    path = Path("spec", "podCIDRs")
    for at, block in enumerate(blocks):
        errs += check_old_cidr(path.index(at), block, strict=strict)
    if len(blocks) > 1:
        errs += _check_families(path, blocks)
    return errs


def _check_families(path: Path, blocks: list[str]) -> list[FieldError]:
    """Two blocks at most, one of each family."""
    errs: list[FieldError] = []
    parsed = [parse_cidr(block) for block in blocks]
    if None in parsed:
        at = parsed.index(None)
        told = f"invalid CIDR[{at}]: <nil> (invalid CIDR address: {blocks[at]})"
        errs.append(internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{told}"))
    families = {block.address.is_ipv4 for block in parsed if block is not None}
    if errs or len(families) != 2 or len(blocks) > 2:
        errs.append(invalid(path, blocks, "may specify no more than one CIDR for each IP family"))
    return errs


def validate_node_update(obj: Object, old: Object) -> list[FieldError]:
    """Errors of a changed node; the way it is also checked when only its status changes."""
    spec, before, status = obj.get("spec") or {}, old.get("spec") or {}, obj.get("status") or {}
    errs = _check_annotations(obj) + _check_resources(status) + _check_features(status)
    errs += _check_node_addresses(status)
    errs += _check_fixed_fields(spec, before)
    if spec.get("configSource") is not None:
        errs += _check_source(Path("spec", "configSource"), spec["configSource"], reported=False)
    for key in ("assigned", "active", "lastKnownGood"):
        source = (status.get("config") or {}).get(key)
        if source is not None:
            errs += _check_source(Path("status", "config", key), source, reported=True)
    if spec.get("taints"):
        errs += check_taints(_METADATA.child("taints"), spec["taints"])
    if spec.get("externalID", "") != before.get("externalID", ""):
        errs.append(forbidden(Path("spec", "externalID"), "may not be updated"))
    return errs


def _check_fixed_fields(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldError]:
    """Blocks and provider, once known, stay."""
    errs: list[FieldError] = []
    blocks, old_blocks = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
    if old_blocks:
        changes = sum(a != b for a, b in zip(old_blocks, blocks, strict=True)) if len(blocks) == len(old_blocks) else 1
        why = 'node updates may not change podCIDR except from "" to valid'
        errs += [forbidden(Path("spec", "podCIDRs"), why)] * changes
    provider, old_provider = spec.get("providerID", ""), before.get("providerID", "")
    if old_provider and provider != old_provider:
        why = "field cannot be modified once set" if provider else "field cannot be cleared once set"
        errs.append(invalid(Path("spec", "providerID"), None, why))
    return errs


def _check_annotations(obj: Object) -> list[FieldError]:
    annotations = obj["metadata"].get("annotations") or {}
    path = _METADATA.child("annotations")
    errs: list[FieldError] = []
    if annotations.get(_TAINTS_KEY):
        try:
            errs += check_taints(path.child(_TAINTS_KEY), read_structs(annotations[_TAINTS_KEY], TAINT))
        except AnnotationError as error:
            errs.append(invalid(path, _TAINTS_KEY, str(error)))
    if annotations.get(_AVOID_KEY):
        try:
            errs += _check_avoids(path.child(_AVOID_KEY), read_json(annotations[_AVOID_KEY]))
        except AnnotationError as error:
            errs.append(invalid(path.child("AvoidPods"), _AVOID_KEY, str(error)))
    return errs


_AVOID_PARTS: Final = {
    "preferAvoidPods": ("AvoidPods", list, "[]v1.PreferAvoidPodsEntry"),
    "podSignature": ("PreferAvoidPodsEntry", dict, "v1.PodSignature"),
    "podController": ("PodSignature", dict, "v1.OwnerReference"),
}


def _check_avoids(path: Path, avoids: Any) -> list[FieldError]:
    errs: list[FieldError] = []
    if avoids is not None and not isinstance(avoids, dict):
        raise AnnotationError(f"json: cannot unmarshal {json_type(avoids)} into Go value of type v1.AvoidPods")
    for at, entry in enumerate(_avoid_part(avoids or {}, "preferAvoidPods")):
        if not isinstance(entry, dict):
            what = "Go struct field AvoidPods.preferAvoidPods of type v1.PreferAvoidPodsEntry"
            raise AnnotationError(f"json: cannot unmarshal {json_type(entry)} into {what}")
        where = path.index(at).child("PodSignature")
        controller = _avoid_part(_avoid_part(entry, "podSignature"), "podController")
        if not controller:
            errs.append(required(where, ""))
        elif not controller.get("controller"):
            errs.append(invalid(where.child("PodController", "Controller"), False, "must point to a controller"))
    return errs


def _avoid_part(holder: dict[str, Any], name: str) -> Any:
    """A part of what pods to avoid, empty where it is missing."""
    owner, expected, shown = _AVOID_PARTS[name]
    value = holder.get(name)
    if value is None or isinstance(value, expected):
        return expected() if value is None else value
    raise AnnotationError(
        f"json: cannot unmarshal {json_type(value)} into Go struct field {owner}.{name} of type {shown}"
    )


def check_taints(path: Path, taints: list[dict[str, Any]]) -> list[FieldError]:
    """Keys and values like those of labels, known effects, unique by key and effect."""
    errs: list[FieldError] = []
    seen = set()
    for at, taint in enumerate(taints):
        where = path.index(at)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errs += refusals(where.child("key"), key, names.check_label_key(key))
        messages = names.check_label_value(value)
        if messages:
            errs.append(invalid(where.child("value"), value, ";".join(messages)))
        if not effect:
            errs.append(required(where.child("effect"), ""))
        elif effect not in _EFFECTS:
            errs.append(not_supported(where.child("effect"), effect, _EFFECTS))
        if (key, effect) in seen:
            shown = internal_form("core.v1.Taint", taint)
            errs.append(FieldError(DUPLICATE, where, shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return errs


def _check_resources(status: dict[str, Any]) -> list[FieldError]:
    errs: list[FieldError] = []
    for key in ("capacity", "allocatable"):
        for name, text in (status.get(key) or {}).items():
            errs += check_quantity(Path("status", key).child(name), name, text)
    return errs


def _check_features(status: dict[str, Any]) -> list[FieldError]:
    features = status.get("declaredFeatures") or ()
    path = Path("status", "declaredFeatures")
    errs: list[FieldError] = []
    before = ""
    for at, feature in enumerate(features):
        if at and feature == before:
            errs.append(duplicate(path.index(at), feature))
        elif at and feature < before:
            errs.append(invalid(path.index(at), feature, "list must be sorted alphabetically"))
        why = _refuse_feature(feature)
        if why:
            errs.append(invalid(path.index(at), feature, why))
        before = feature
    return errs


def _refuse_feature(name: str) -> str:
    if len(name) > 253:
        return f"invalid feature name {quote(name)}: must be no more than 253 characters"
    if _FEATURE.fullmatch(name):
        return ""
    return (
        f"invalid feature name {quote(name)}: must start with an UpperCamelCase segment, with subsequent segments "
        "separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
        "and slashes"
    )


def _check_node_addresses(status: dict[str, Any]) -> list[FieldError]:
    errs: list[FieldError] = []
    seen = set()
    for at, address in enumerate(status.get("addresses") or ()):
        key = address.get("type"), address.get("address")
        if key in seen:
            shown = internal_form("core.v1.NodeAddress", address)
            errs.append(duplicate(Path("status", "addresses").index(at), shown))
        seen.add(key)
    return errs


def _check_source(path: Path, source: dict[str, Any], *, reported: bool) -> list[FieldError]:
    """A source of dynamic configuration; identity belongs into the status alone."""
    reference = source.get("configMap")
    if reference is None:
        return [invalid(path, internal_form("core.v1.NodeConfigSource", source), _ONE_REFERENCE)]
    where = path.child("configMap")
    errs: list[FieldError] = []
    for key in ("uid", "resourceVersion"):
        if reported and not reference.get(key):
            errs.append(required(where.child(key), ""))
        elif not reported and reference.get(key):
            errs.append(forbidden(where.child(key), f"{key} must not be set in spec"))
    checks = {
        "namespace": names.check_dns1123_label,
        "name": names.check_dns1123_subdomain,
        "kubeletConfigKey": names.check_config_map_key,
    }
    for key, check in checks.items():
        value = reference.get(key)
        errs += refusals(where.child(key), value, check(value)) if value else [required(where.child(key), "")]
    return errs
