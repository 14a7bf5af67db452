"""Services: their strategies, columns and warnings. Addresses and node ports are allocated before these hooks run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.service.fields import (
    default_service,
    drop_unneeded,
    is_external_name,
    normalize_cluster_ips,
    spec_of,
)
from pilothouse.apis.core.service.validation import (
    HINTS,
    TOPOLOGY_MODE,
    validate_load_balancer_status,
    validate_service,
    validate_service_update,
)
from pilothouse.apis.object_names import name_is_dns_label
from pilothouse.apis.strategy import Column, Context, Doc, HiddenField, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, UpdateRules
from pilothouse.machinery.addresses import warn_about_cidr, warn_about_ip
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

_DOC: Final = "core.v1.ServiceSpec"


def show_load_balancer(status: dict[str, Any] | None) -> str:
    """The addresses, or else host names, that a load balancer reports."""
    entries = ((status or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""}))


def _external_ip_cell(obj: Object) -> str:
    spec = spec_of(obj)
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or "<none>"
        case "LoadBalancer":
            reported = show_load_balancer(obj.get("status"))
            return ",".join(([reported] if reported else []) + external) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _ports_cell(obj: Object) -> str:
    shown = []
    for port in spec_of(obj).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort", 0) > 0 else ""
        shown.append(f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}")
    return ",".join(shown) or "<none>"


def show_labels(labels: dict[str, str] | None) -> str:
    """Labels as a selector would name them."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


COLUMNS: Final = (
    NAME,
    Column("Type", "string", lambda obj: spec_of(obj).get("type", ""), description=Doc(_DOC, "type")),
    Column(
        "Cluster-IP",
        "string",
        lambda obj: (spec_of(obj).get("clusterIPs") or ["<none>"])[0],
        description=Doc(_DOC, "clusterIP"),
    ),
    Column("External-IP", "string", _external_ip_cell, description=Doc(_DOC, "externalIPs")),
    Column("Port(s)", "string", _ports_cell, description=Doc(_DOC, "ports")),
    AGE,
    Column(
        "Selector",
        "string",
        lambda obj: show_labels(spec_of(obj).get("selector")),
        priority=1,
        description=Doc(_DOC, "selector"),
    ),
)


class ServiceStatusStrategy(StatusStrategy):
    """``/status``: what the load balancer reports. A report about a service that is not there creates it."""

    update_rules = UpdateRules(allow_create=True)

    def default(self, obj: Object) -> None:
        default_service(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_load_balancer_status(obj, old, strict=self.strict_addresses)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        entries = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        return [
            warning
            for at, entry in enumerate(entries)
            for warning in warn_about_ip(f"status.loadBalancer.ingress[{at}]", entry.get("ip") or "")
        ]


class ServiceStrategy(Strategy):
    """A PUT may create. A change of type drops what the new type has no use for."""

    validate_name = staticmethod(name_is_dns_label)
    update_rules = UpdateRules(allow_create=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ServiceStatusStrategy}
    reset_fields = ("status",)
    field_labels = frozenset({"spec.clusterIP", "spec.type"})
    columns = COLUMNS
    hidden = HiddenField("internalTrafficPolicy", is_external_name)
    """An external name has no use for it; a patch that changes the type finds it again."""

    def default(self, obj: Object) -> None:
        default_service(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        status = dict(old.get("status") or {})
        drop_unneeded(obj["spec"], spec_of(old))
        if obj["spec"].get("type") != "LoadBalancer":
            status["loadBalancer"] = {}
        obj["status"] = status

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_service(obj, strict=self.strict_addresses)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_service_update(obj, old, strict=self.strict_addresses)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        spec = spec_of(obj)
        warnings = []
        if HINTS in (obj["metadata"].get("annotations") or ()):
            warnings.append(f"annotation {HINTS} is deprecated, please use {TOPOLOGY_MODE} instead")
        return warnings + _warn_about_addresses(spec) + _warn_about_type(spec)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)

    def canonicalize(self, obj: Object) -> None:
        normalize_cluster_ips(obj["spec"])

    def fields(self, obj: Object) -> dict[str, str]:
        spec = spec_of(obj)
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _warn_about_addresses(spec: dict[str, Any]) -> list[str]:
    external, headless = spec.get("externalIPs") or (), _warns_as_headless(spec)
    warnings = []
    if spec.get("clusterIP") and spec["clusterIP"] != "None":
        for at, ip in enumerate(spec.get("clusterIPs") or ()):
            warnings += warn_about_ip(f"spec.clusterIPs[{at}]", ip)
    if headless:
        if spec.get("loadBalancerIP"):
            warnings.append("spec.loadBalancerIP is ignored for headless services")
        if external:
            warnings.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") != "None":
            warnings.append("spec.SessionAffinity is ignored for headless services")
    for at, ip in enumerate(external):
        warnings += warn_about_ip(f"spec.externalIPs[{at}]", ip)
    if external and not headless and spec.get("type") != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        warnings += warn_about_ip("spec.loadBalancerIP", spec["loadBalancerIP"])
    for at, block in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        warnings += warn_about_cidr(f"spec.loadBalancerSourceRanges[{at}]", block)
    return warnings


def _warns_as_headless(spec: dict[str, Any]) -> bool:
    return spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"


def _warn_about_type(spec: dict[str, Any]) -> list[str]:
    warnings = []
    if spec.get("type") == "ExternalName" and spec.get("externalIPs"):
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings
