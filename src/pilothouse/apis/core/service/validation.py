"""What makes a service valid, by itself and after a change."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.checks import (
    PROTOCOLS,
    check_dns_label,
    check_dns_subdomain,
    check_endpoint_ip,
    check_enum,
    check_old_cidr,
    check_old_ip,
    check_port,
    check_port_or_name,
    check_qualified_name,
)
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.service.addresses import validate_address_change, validate_addresses
from pilothouse.apis.core.service.fields import Spec, is_externally_accessible, is_headless, needs_health_check, spec_of
from pilothouse.machinery import addresses, labels, names
from pilothouse.machinery.field_errors import (
    FieldError,
    Named,
    Path,
    as_json,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_PORTS: Final = Path("spec", "ports")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LOAD_BALANCER_ONLY: Final = "may only be used when `type` is 'LoadBalancer'"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
HINTS: Final = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_MAX_AFFINITY: Final = 86400


def validate_service(obj: Object, old: Object | None = None, *, strict: bool = True) -> list[FieldError]:
    """Errors of a service; an old one lets its own old-fashioned values pass."""
    spec, before = spec_of(obj), None if old is None else spec_of(old)
    annotations = obj["metadata"].get("annotations") or {}
    errs = _check_topology(annotations)
    errs += _check_type_needs(spec)
    errs += _check_ports(spec.get("ports") or [])
    if spec.get("selector"):
        errs += labels.validate_labels(spec["selector"], _SPEC.child("selector"))
    errs += _check_affinity(spec)
    errs += validate_addresses(spec, before, strict=strict)
    known = (before or {}).get("externalIPs") or ()
    for at, ip in enumerate(spec.get("externalIPs") or ()):
        where = _SPEC.child("externalIPs").index(at)
        errs += check_old_ip(where, ip, known, strict=strict) or check_endpoint_ip(where, ip)
    errs += check_enum(_SPEC.child("type"), spec.get("type"), _TYPES)
    errs += _check_port_numbers(spec)
    errs += _check_source_ranges(spec, before, annotations, old, strict=strict)
    allocates = spec.get("allocateLoadBalancerNodePorts")
    if allocates is not None and spec.get("type") != "LoadBalancer":
        errs.append(forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _LOAD_BALANCER_ONLY))
    if allocates is None and spec.get("type") == "LoadBalancer":
        errs.append(required(Path("allocateLoadBalancerNodePorts"), ""))
    return errs + _check_class(spec) + _check_traffic(spec)


def validate_service_update(obj: Object, old: Object, *, strict: bool = True) -> list[FieldError]:
    """Errors of a changed service."""
    spec, before = spec_of(obj), spec_of(old)
    errs = validate_address_change(spec, before)
    balanced = spec.get("type") == before.get("type") == "LoadBalancer"
    if balanced and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        shown = as_json(spec.get("loadBalancerClass"))
        errs.append(invalid(_SPEC.child("loadBalancerClass"), shown, "may not change once set"))
    errs += _check_class(spec)
    checked = needs_health_check(before) and needs_health_check(spec)
    if checked and spec.get("healthCheckNodePort", 0) != before.get("healthCheckNodePort", 0):
        errs.append(forbidden(_SPEC.child("healthCheckNodePort"), "field is immutable"))
    return errs + validate_service(obj, old, strict=strict)


def _check_topology(annotations: dict[str, str]) -> list[FieldError]:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    why = f"must match annotations[{HINTS}] when both are specified"
    return [invalid(Path("metadata", "annotations").key(TOPOLOGY_MODE), mode, why)]


def _check_type_needs(spec: Spec) -> list[FieldError]:
    type_, headless = spec.get("type"), is_headless(spec)
    errs: list[FieldError] = []
    if not spec.get("ports") and not headless and type_ != "ExternalName":
        errs.append(required(_PORTS, ""))
    if headless and type_ in ("LoadBalancer", "NodePort"):
        where = _SPEC.child("clusterIPs").index(0)
        errs.append(invalid(where, spec["clusterIPs"][0], f"may not be set to 'None' for {type_} services"))
    if type_ == "ExternalName":
        errs += _check_external_name(spec)
    return errs


def _check_external_name(spec: Spec) -> list[FieldError]:
    errs = [
        forbidden(_SPEC.child(key), "may not be set for ExternalName services")
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key) or (key == "ipFamilyPolicy" and spec.get(key) is not None)
    ]
    name = spec.get("externalName", "").removesuffix(".")
    where = _SPEC.child("externalName")
    return errs + (check_dns_subdomain(where, name) if name else [required(where, "")])


def _check_ports(ports: list[dict[str, Any]]) -> list[FieldError]:
    errs: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        path = _PORTS.index(at)
        name = port.get("name", "")
        if name:
            errs += check_dns_label(path.child("name"), name)
            if name in seen:
                errs.append(duplicate(path.child("name"), name))
            seen.add(name)
        elif len(ports) > 1:
            errs.append(required(path.child("name"), ""))
        errs += check_port(path.child("port"), port.get("port", 0))
        errs += check_enum(path.child("protocol"), port.get("protocol"), PROTOCOLS)
        errs += check_port_or_name(path.child("targetPort"), port.get("targetPort", 0))
        if port.get("appProtocol") is not None:
            errs += check_qualified_name(path.child("appProtocol"), port["appProtocol"])
    return errs


def _check_port_numbers(spec: Spec) -> list[FieldError]:
    """Node ports only where the type has them; numbers unique for each protocol."""
    ports = spec.get("ports") or ()
    errs: list[FieldError] = []
    if spec.get("type") == "ClusterIP":
        why = "may not be used when `type` is 'ClusterIP'"
        used = (at for at, port in enumerate(ports) if port.get("nodePort"))
        errs += (forbidden(_PORTS.index(at).child("nodePort"), why) for at in used)
    seen: set[tuple[Any, int]] = set()
    for at, port in enumerate(ports):
        key = port.get("protocol"), port.get("nodePort", 0)
        if key[1] and key in seen:
            errs.append(duplicate(_PORTS.index(at).child("nodePort"), key[1]))
        seen.add(key)
    seen = set()
    for at, port in enumerate(ports):
        key = port.get("protocol"), port.get("port", 0)
        if key in seen:
            shown = {"protocol": key[0], "port": key[1]}
            errs.append(duplicate(_PORTS.index(at), internal_form("core.v1.ServicePort", shown)))
        seen.add(key)
    return errs


def _check_affinity(spec: Spec) -> list[FieldError]:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    errs = check_enum(_SPEC.child("sessionAffinity"), affinity, ("ClientIP", "None"))
    path = _SPEC.child("sessionAffinityConfig")
    if affinity == "None" and config is not None:
        errs.append(forbidden(path, "must not be set when session affinity is None"))
    if affinity != "ClientIP":
        return errs
    why = "when session affinity type is ClientIP"
    if config is None:
        return [*errs, required(path, why)]
    if config.get("clientIP") is None:
        return [*errs, required(path.child("clientIP"), why)]
    seconds = config["clientIP"].get("timeoutSeconds")
    where = path.child("clientIP", "timeoutSeconds")
    if seconds is None:
        errs.append(required(where, why))
    elif not 0 < seconds <= _MAX_AFFINITY:
        errs.append(invalid(where, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY}"))
    return errs


def _check_source_ranges(
    spec: Spec, before: Spec | None, annotations: dict[str, str], old: Object | None, *, strict: bool
) -> list[FieldError]:
    """By field, or by the annotation that came before the field. Blanks around a block are part of the API."""
    ranges = spec.get("loadBalancerSourceRanges") or ()
    errs: list[FieldError] = []
    if ranges:
        path = _SPEC.child("LoadBalancerSourceRanges")
        known = [value.strip() for value in (before or {}).get("loadBalancerSourceRanges") or ()]
    elif _SOURCE_RANGES in annotations:
        path, known = Path("metadata", "annotations").key(_SOURCE_RANGES), []
    else:
        return []
    if spec.get("type") != "LoadBalancer":
        errs.append(forbidden(path, _LOAD_BALANCER_ONLY))
    for at, block in enumerate(ranges):
        errs += check_old_cidr(path.index(at), block.strip(), known, strict=strict)
    if not ranges:
        text = annotations[_SOURCE_RANGES]
        stored = ((old or {}).get("metadata", {}).get("annotations") or {}).get(_SOURCE_RANGES)
        if text.strip() and (old is None or stored != text):
            for block in text.strip().split(","):
                errs += check_old_cidr(path, block.strip(), strict=strict)
    return errs


def _check_class(spec: Spec) -> list[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    where = _SPEC.child("loadBalancerClass")
    if spec.get("type") == "LoadBalancer":
        return check_qualified_name(where, name)
    return [forbidden(where, _LOAD_BALANCER_ONLY)]


def _check_traffic(spec: Spec) -> list[FieldError]:
    errs: list[FieldError] = []
    policy, path = spec.get("externalTrafficPolicy"), _SPEC.child("externalTrafficPolicy")
    if is_externally_accessible(spec):
        errs += check_enum(path, policy, _POLICIES)
    elif policy:
        errs.append(invalid(path, Named(policy), "may only be set for externally-accessible services"))
    errs += _check_health_port(spec)
    internal, path = spec.get("internalTrafficPolicy"), _SPEC.child("internalTrafficPolicy")
    if internal is None:
        if spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
            errs.append(required(path, ""))
    elif internal not in _POLICIES:
        errs.append(not_supported(path, internal, _POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errs.append(not_supported(_SPEC.child("trafficDistribution"), distribution, _DISTRIBUTIONS, plain=True))
    return errs


def _check_health_port(spec: Spec) -> list[FieldError]:
    port, path = spec.get("healthCheckNodePort", 0), _SPEC.child("healthCheckNodePort")
    if needs_health_check(spec):
        return check_port(path, port) if port else [required(path, "")]
    why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid(path, port, why)] if port else []


def validate_load_balancer_status(obj: Object, old: Object | None, *, strict: bool = True) -> list[FieldError]:
    """Errors of what a load balancer reports."""
    entries = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    path = Path("status", "loadBalancer", "ingress")
    if entries and spec_of(obj).get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    before = (((old or {}).get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    known = [entry["ip"] for entry in before if entry.get("ip")]
    errs: list[FieldError] = []
    for at, entry in enumerate(entries):
        errs += _check_ingress(path.index(at), entry, known, strict)
    return errs


def _check_ingress(path: Path, entry: dict[str, Any], known: list[str], strict: bool) -> list[FieldError]:
    ip, mode, host = entry.get("ip"), entry.get("ipMode"), entry.get("hostname")
    errs: list[FieldError] = []
    if ip:
        errs += check_old_ip(path.child("ip"), ip, known, strict=strict)
    if mode is None:
        if ip:
            errs.append(required(path.child("ipMode"), "must be specified when `ip` is set"))
    elif not ip:
        errs.append(forbidden(path.child("ipMode"), "may not be specified when `ip` is not set"))
    elif mode not in ("VIP", "Proxy"):
        errs.append(not_supported(path.child("ipMode"), mode, ("Proxy", "VIP")))
    if host:
        errs += (invalid(path.child("hostname"), host, message) for message in names.check_dns1123_subdomain(host))
        if addresses.parse_ip(host) is not None:
            errs.append(invalid(path.child("hostname"), host, "must be a DNS name, not an IP address"))
    return errs
