"""What a node may say about itself: neither taints nor owners, and of the reserved labels only those of kubelets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.go_quote import quote

_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAIN: Final = "node-restriction.kubernetes.io"


def check_node(name: str, attributes: Attributes) -> None:
    """Refuse what a node must not write."""
    node = quote(name)
    if attributes.name != name:
        raise forbidden(attributes, f"node {node} is not allowed to modify node {quote(attributes.name)}")
    new, old = attributes.object or {}, attributes.old_object or {}
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    labels = (new.get("metadata") or {}).get("labels") or {}
    if attributes.operation == CREATE:
        if spec.get("configSource") is not None:
            why = f"node {node} is not allowed to create pods with a non-nil configSource"
            raise forbidden(attributes, why)
        bad = _forbidden_labels(labels, {})
        if bad:
            raise forbidden(attributes, f"node {node} is not allowed to set the following labels: {', '.join(bad)}")
    elif attributes.operation == UPDATE:
        source = spec.get("configSource")
        if source is not None and source != before.get("configSource"):
            why = f"node {node} is not allowed to update configSource to a new non-nil configSource"
            raise forbidden(attributes, why)
        if (spec.get("taints") or []) != (before.get("taints") or []):
            raise forbidden(attributes, f"node {node} is not allowed to modify taints")
        owners = [(each.get("metadata") or {}).get("ownerReferences") or [] for each in (new, old)]
        if owners[0] != owners[1]:
            raise forbidden(attributes, f"node {node} is not allowed to modify ownerReferences")
        bad = _forbidden_labels(labels, (old.get("metadata") or {}).get("labels") or {})
        if bad:
            raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(bad)}")


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    changed = (key for key in {*new, *old} if new.get(key) != old.get(key))
    return sorted(key for key in changed if _is_forbidden(key))


def _is_forbidden(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    if _is_within(domain, _RESTRICTED_DOMAIN):
        return True
    if not _is_within(domain, "kubernetes.io") and not _is_within(domain, "k8s.io"):
        return False
    return key not in _KUBELET_LABELS and not any(_is_within(domain, allowed) for allowed in _KUBELET_DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)
