"""Endpoints: addresses and ports behind a service, in subsets."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import (
    PROTOCOLS,
    check_dns_label,
    check_endpoint_ip,
    check_enum,
    check_old_ip,
    check_port,
    check_qualified_name,
    refusals,
)
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import FieldError, Path, required
from pilothouse.machinery.objects import Object

_SUBSETS: Final = Path("subsets")
_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_CONTROLLER: Final = "endpoint-controller"
_SHOWN: Final = 3


class EndpointsStrategy(Strategy):
    """Written mostly by controllers; a PUT may create."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    update_rules = UpdateRules(allow_create=True)
    columns = (
        NAME,
        Column("Endpoints", "string", lambda obj: show_endpoints(obj), description=Doc("core.v1.Endpoints", "subsets")),
        AGE,
    )

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        for at, subset in enumerate(obj.get("subsets") or ()):
            errs += _check_subset(_SUBSETS.index(at), subset, self.strict_addresses)
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = self.validate(ctx, obj)
        # Unchanged subsets were valid under the rules of their time.
        return [] if errs and obj.get("subsets") == old.get("subsets") else errs

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) == _CONTROLLER:
            return []
        warnings = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            for key in ("addresses", "notReadyAddresses"):
                for j, address in enumerate(subset.get(key) or ()):
                    warnings += addresses.warn_about_ip(f"subsets[{i}].{key}[{j}].ip", address.get("ip", ""))
        return warnings

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)


def _check_subset(path: Path, subset: dict[str, Any], strict: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    ready, not_ready = subset.get("addresses") or (), subset.get("notReadyAddresses") or ()
    if not ready and not not_ready:
        errs.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for at, address in enumerate(ready):
        errs += _check_address(path.child("addresses").index(at), address, strict)
    for at, address in enumerate(not_ready):
        errs += _check_address(path.child("notReadyAddresses").index(at), address, strict)
    ports = subset.get("ports") or ()
    for at, port in enumerate(ports):
        errs += _check_port(path.child("ports").index(at), port, named=len(ports) > 1)
    return errs


def _check_address(path: Path, address: dict[str, Any], strict: bool) -> list[FieldError]:
    ip = address.get("ip", "")
    errs = check_old_ip(path.child("ip"), ip, strict=strict)
    if address.get("hostname"):
        errs += check_dns_label(path.child("hostname"), address["hostname"])
    node = address.get("nodeName")
    if node is not None:
        errs += refusals(path.child("nodeName"), node, names.check_dns1123_subdomain(node))
    return errs + check_endpoint_ip(path.child("ip"), ip)


def _check_port(path: Path, port: dict[str, Any], *, named: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    if port.get("name"):
        errs += check_dns_label(path.child("name"), port["name"])
    elif named:
        errs.append(required(path.child("name"), ""))
    errs += check_port(path.child("port"), port.get("port", 0))
    errs += check_enum(path.child("protocol"), port.get("protocol"), PROTOCOLS)
    if port.get("appProtocol") is not None:
        errs += check_qualified_name(path.child("appProtocol"), port["appProtocol"])
    return errs


def show_endpoints(obj: Object) -> str:
    """The first few addresses, with their ports, and how many more there are."""
    subsets = obj.get("subsets") or ()
    if not subsets:
        return "<none>"
    shown = []
    for subset in subsets:
        ips = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            shown += ips
        for port in ports:
            shown += (f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips)
    more = f" + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else ""
    return ",".join(shown[:_SHOWN]) + more
