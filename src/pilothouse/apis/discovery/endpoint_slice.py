"""EndpointSlices: addresses and ports behind a service, in pieces of limited size."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import (
    PROTOCOLS,
    check_dns_label,
    check_endpoint_ip,
    check_old_ip,
    check_qualified_name,
    is_ipv6,
    refusals,
)
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery import addresses, labels, names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from pilothouse.machinery.objects import Object

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS: Final = Path("endpoints")
_PORTS: Final = Path("ports")
_MAX_ENDPOINTS: Final = 1000
_MAX_PORTS: Final = 20000
_MAX_ADDRESSES: Final = 100
_MAX_TOPOLOGY: Final = 16
_MAX_HINTS: Final = 8
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_SHOWN: Final = 3
_DOC: Final = "discovery.v1.EndpointSlice"


def _show_few(texts: list[str]) -> str:
    more = f" + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else ""
    return ",".join(texts[:_SHOWN]) + more or "<unset>"


def _ports_cell(obj: Object) -> str:
    ports = obj.get("ports") or ()
    return _show_few([str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in ports])


def _endpoints_cell(obj: Object) -> str:
    return _show_few([address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()])


class EndpointSliceStrategy(Strategy):
    """Changes of labels count as new generations too: they say which service the slice is of."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    address_types: ClassVar[tuple[str, ...]] = _TYPES
    keeps_topology: ClassVar[bool] = False
    """Whether the topology of the beta versions may be written."""
    columns = (
        NAME,
        Column("AddressType", "string", lambda obj: obj.get("addressType", ""), description=Doc(_DOC, "addressType")),
        Column("Ports", "string", _ports_cell, description=Doc(_DOC, "ports")),
        Column("Endpoints", "string", _endpoints_cell, description=Doc(_DOC, "endpoints")),
        AGE,
    )

    def default(self, obj: Object) -> None:
        for port in obj.get("ports") or ():
            if port.get("name") is None:
                port["name"] = ""
            if port.get("protocol") is None:
                port["protocol"] = "TCP"

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        if not self.keeps_topology:
            _drop_topology(obj, None)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        metadata, before = obj["metadata"], old["metadata"]
        # No list at all and an empty one are the same.
        changed = any((obj.get(key) or None) != (old.get(key) or None) for key in ("addressType", "endpoints", "ports"))
        if changed or (metadata.get("labels") or {}) != (before.get("labels") or {}):
            metadata["generation"] = before.get("generation", 0) + 1
        if not self.keeps_topology:
            _drop_topology(obj, old)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _check_slice(obj, None, self.address_types, strict=self.strict_addresses).listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _check_slice(obj, old, self.address_types, strict=self.strict_addresses).listed()

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        deprecated = obj.get("addressType") == "FQDN"
        warnings = ["spec.addressType: FQDN endpoints are deprecated"] if deprecated else []
        return warnings + self.warnings_on_update(ctx, obj, obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
            return []
        warnings = []
        for i, endpoint in enumerate(obj.get("endpoints") or ()):
            for j, address in enumerate(endpoint.get("addresses") or ()):
                warnings += addresses.warn_about_ip(f"endpoints[{i}].addresses[{j}]", address)
        return warnings


def _drop_topology(obj: Object, old: Object | None) -> None:
    """The topology of the beta versions is not served; where it named a node, that name is kept."""
    endpoints = obj.get("endpoints") or ()
    if old is not None and old.get("endpoints") == obj.get("endpoints"):
        return
    known = {(each.get("deprecatedTopology") or {}).get(HOSTNAME) for each in (old or {}).get("endpoints") or ()}
    for endpoint in endpoints:
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(HOSTNAME)
        if node and node in known and endpoint.get("nodeName") is None and not names.check_dns1123_subdomain(node):
            endpoint["nodeName"] = node


def _check_slice(obj: Object, old: Object | None, known: tuple[str, ...], *, strict: bool) -> ErrorList:
    errs = ErrorList()
    type_ = obj.get("addressType", "")
    errs.errors += _check_ports(obj.get("ports") or ())
    endpoints = ErrorList()
    _check_endpoints(endpoints, obj.get("endpoints") or (), type_, strict)
    # Unchanged endpoints were valid under the rules of their time.
    if old is None or old.get("endpoints") != obj.get("endpoints"):
        errs.errors += endpoints.errors
    _check_type(type_, old, known, errs)
    errs.declared += endpoints.declared
    return errs


def _check_type(type_: str, old: Object | None, known: tuple[str, ...], errs: ErrorList) -> None:
    path = Path("addressType")
    if not type_:
        errs.declared.append(required(path))
    kept = old is None or errs.keep_declared(path, type_, old.get("addressType", ""))
    if type_ and type_ not in known:
        # The declared rules stop at a change; the written one comes before those for ports.
        unknown = not_supported(path, type_, known)
        errs.declared.append(unknown) if kept else errs.errors.insert(0, unknown)


def _check_ports(ports: Any) -> list[FieldError]:
    if len(ports) > _MAX_PORTS:
        return [too_many(_PORTS, len(ports), _MAX_PORTS)]
    errs: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        path = _PORTS.index(at)
        name = port.get("name") or ""
        if name:
            errs += check_dns_label(path.child("name"), name)
        if name in seen:
            errs.append(duplicate(path.child("name"), name))
        seen.add(name)
        if port["protocol"] not in PROTOCOLS:  # given always: a missing one is TCP, an empty one is not
            errs.append(not_supported(path.child("protocol"), port["protocol"], PROTOCOLS))
        if port.get("appProtocol") is not None:
            errs += check_qualified_name(path.child("appProtocol"), port["appProtocol"])
    return errs


def _check_endpoints(errs: ErrorList, endpoints: Any, type_: str, strict: bool) -> None:
    if len(endpoints) > _MAX_ENDPOINTS:
        errs.errors.append(too_many(_ENDPOINTS, len(endpoints), _MAX_ENDPOINTS))
        return
    for at, endpoint in enumerate(endpoints):
        path = _ENDPOINTS.index(at)
        given = endpoint.get("addresses") or ()
        if not given:
            errs.declared.append(required(path.child("addresses")))
        elif len(given) > _MAX_ADDRESSES:
            errs.declared.append(too_many(path.child("addresses"), len(given), _MAX_ADDRESSES))
        for position, address in enumerate(given):
            errs.errors += _check_address(path.child("addresses"), position, address, type_, strict)
        errs.errors += _check_rest(path, endpoint)


def _check_address(path: Path, position: int, address: str, type_: str, strict: bool) -> list[FieldError]:
    where = path.index(position)
    if type_ == "FQDN":
        return names.check_fully_qualified_domain_name(where, address)
    if type_ == "IP":
        return refusals(where, address, addresses.check_ip(address))
    if type_ == "IPv4":
        errs = check_old_ip(where, address, strict=strict)
        wrong = not errs and is_ipv6(address)
    elif type_ == "IPv6":
        errs = refusals(where, address, addresses.check_ip(address))
        wrong = not errs and not is_ipv6(address)
    else:
        return []
    if errs:
        return errs
    mismatch = [invalid(path, address, f"must be an {type_} address")] if wrong else []
    return mismatch + check_endpoint_ip(where, address)


def _check_rest(path: Path, endpoint: dict[str, Any]) -> list[FieldError]:
    errs: list[FieldError] = []
    node = endpoint.get("nodeName")
    if node is not None:
        errs += refusals(path.child("nodeName"), node, names.check_dns1123_subdomain(node))
    topology = endpoint.get("deprecatedTopology") or {}
    if topology:
        where = path.child("deprecatedTopology")
        if len(topology) > _MAX_TOPOLOGY:
            errs.append(too_many(where, len(topology), _MAX_TOPOLOGY))
        errs += labels.validate_labels(topology, where)
        if ZONE in topology:
            errs.append(internal(where.key(ZONE), "reserved key was not removed in conversion"))
    if endpoint.get("hostname") is not None:
        errs += check_dns_label(path.child("hostname"), endpoint["hostname"])
    if endpoint.get("hints") is not None:
        errs += _check_hints(path.child("hints"), endpoint["hints"])
    return errs


def _check_hints(path: Path, hints: dict[str, Any]) -> list[FieldError]:
    errs: list[FieldError] = []
    for key, check in (("forZones", names.check_label_value), ("forNodes", names.check_dns1123_subdomain)):
        given = hints.get(key) or ()
        where = path.child(key)
        if len(given) > _MAX_HINTS:
            return [*errs, too_many(where, len(given), _MAX_HINTS)]
        seen: set[str] = set()
        for at, hint in enumerate(given):
            name = hint.get("name", "")
            if name in seen:
                errs.append(duplicate(where.index(at).child("name"), name))
            seen.add(name)
            errs += refusals(where.index(at).child("name"), name, check(name))
    return errs
