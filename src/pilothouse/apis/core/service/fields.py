"""How a service's fields hang together: what its type needs, and what follows when only some of them are given.

These rules need no allocator. ``patch_allocated`` and ``normalize_cluster_ips`` run before allocation on every write,
so that a client may send its own manifest again without the values that were allocated for it; ``drop_unneeded`` takes
away what a change of type leaves without meaning, unless the client changed it in the same breath.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Object

Spec = dict[str, Any]
HEADLESS = "None"


def spec_of(obj: Object) -> Spec:
    spec: Spec = obj.get("spec") or {}
    return spec


def is_headless(spec: Spec) -> bool:
    """Whether it has endpoints but no address of its own."""
    return spec.get("clusterIPs") == [HEADLESS]


def needs_cluster_ip(spec: Spec) -> bool:
    return spec.get("type") != "ExternalName"


def has_node_ports(spec: Spec) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def allocates_node_ports(spec: Spec) -> bool:
    """Whether ports without a node port get one."""
    type_ = spec.get("type")
    return type_ == "NodePort" or (type_ == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def is_externally_accessible(spec: Spec) -> bool:
    return has_node_ports(spec) or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Spec) -> bool:
    """Whether load balancers must find out which nodes have endpoints."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def node_ports(spec: Spec) -> list[int]:
    """The node ports in use, in order."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def default_service(obj: Object) -> None:
    """Fill in what the user left open."""
    spec = obj.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if is_externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def _default_affinity(spec: Spec) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        given = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if given.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def normalize_cluster_ips(spec: Spec, before: Spec | None = None) -> None:
    """Bring the single address and the list of addresses together: the single one is what older clients know."""
    single, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if before is None:
        if single and not many:
            spec["clusterIPs"] = [single]
        return
    old_single, old_many = before.get("clusterIP", ""), before.get("clusterIPs") or []
    if old_many and not many and single == old_single:
        spec["clusterIPs"] = many = list(old_many)
    if single != old_single and many == old_many:
        if single:
            spec["clusterIPs"] = [single]
        elif old_single:
            spec.pop("clusterIPs", None)


def patch_allocated(spec: Spec, before: Spec) -> None:
    """Put back allocated values that the client left out."""
    if needs_cluster_ip(before) and needs_cluster_ip(spec):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if allocates_node_ports(before) and allocates_node_ports(spec):
        _patch_node_ports(spec, before)
    checked = needs_health_check(before) and needs_health_check(spec)
    if checked and not spec.get("healthCheckNodePort") and before.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]


def _patch_node_ports(spec: Spec, before: Spec) -> None:
    used = set(node_ports(spec)) & set(node_ports(before))
    known = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        number = known.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number


def is_external_name(service: Object) -> bool:
    """Whether it is no more than a name elsewhere."""
    return not needs_cluster_ip(spec_of(service))


def default_stored(spec: Spec, primary: str = "IPv4") -> None:
    """Complete a service that was stored before addresses became a list and families were known."""
    normalize_cluster_ips(spec)
    if not needs_cluster_ip(spec):
        return
    if spec.get("ipFamilies"):
        return
    other = "IPv6" if primary == "IPv4" else "IPv4"
    if spec.get("clusterIP") == HEADLESS:
        alone = bool(spec.get("selector"))
        spec["ipFamilies"] = [primary] if alone else [primary, other]
        spec["ipFamilyPolicy"] = "SingleStack" if alone else "RequireDualStack"
    elif spec.get("clusterIPs"):
        spec["ipFamilies"] = ["IPv6" if ":" in ip else "IPv4" for ip in spec["clusterIPs"]]
        spec["ipFamilyPolicy"] = "SingleStack" if len(spec["ipFamilies"]) == 1 else "RequireDualStack"


def drop_unneeded(spec: Spec, before: Spec) -> None:
    """Take away what a change of type makes meaningless, as long as the client left it as it was."""
    if needs_cluster_ip(before) and not needs_cluster_ip(spec):
        if _same(spec, before, "clusterIP", "clusterIPs"):
            _drop(spec, "clusterIP", "clusterIPs")
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, before, key):
                _drop(spec, key)
    if has_node_ports(before) and not has_node_ports(spec) and set(node_ports(spec)) <= set(node_ports(before)):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    dependent = {
        "healthCheckNodePort": needs_health_check,
        "allocateLoadBalancerNodePorts": _is_load_balancer,
        "loadBalancerClass": _is_load_balancer,
        "externalTrafficPolicy": is_externally_accessible,
    }
    for key, applies in dependent.items():
        if applies(before) and not applies(spec) and _same(spec, before, key):
            _drop(spec, key)


def _is_load_balancer(spec: Spec) -> bool:
    return spec.get("type") == "LoadBalancer"


def _same(spec: Spec, before: Spec, *keys: str) -> bool:
    return all((spec.get(key) or None) == (before.get(key) or None) for key in keys)


def _drop(spec: Spec, *keys: str) -> None:
    for key in keys:
        spec.pop(key, None)
