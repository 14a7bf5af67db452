"""Whether a webhook wants to see a request, and in which version.

namespace selector → object selector → rules, first as the request came, then in equivalent versions → conditions
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pilothouse.admission.objects import Objects
from pilothouse.admission.versions import ServedVersions
from pilothouse.admission.webhooks.hooks import Hook, Rule
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.labels import Selector

EXCLUDED: Final = frozenset(
    {
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
    }
)
_REGISTRATION: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook to be called, and the version it wants."""

    hook: Hook
    resource: GroupVersionResource
    kind: GroupVersionKind


def is_registration(resource: GroupVersionResource | GroupResource) -> bool:
    """Whether only webhooks from files see a resource: others could lock out who wants to repair them."""
    return resource.group == "admissionregistration.k8s.io" and resource.resource in _REGISTRATION


async def match(hook: Hook, attributes: Attributes, namespaces: Objects, served: ServedVersions) -> Invocation | None:
    """The invocation of a webhook for a request, None if it is not concerned; conditions are not looked at yet."""
    selected = await selects_namespace(hook.namespaces, attributes, namespaces)
    if selected is False or not selects_object(hook.objects, attributes):
        return None
    found = _match_rules(hook, attributes, served)
    if found is not None and isinstance(selected, errors.StatusError):
        raise selected
    return found


async def selects_namespace(
    selector: Selector, attributes: Attributes, namespaces: Objects
) -> bool | errors.StatusError:
    """Whether the namespace is selected; an error counts only if the rules match."""
    name, resource = attributes.namespace, attributes.resource.resource
    if selector.empty or (not name and resource != "namespaces"):
        return True
    own = resource == "namespaces" and not attributes.subresource and attributes.operation in (CREATE, UPDATE)
    if own and attributes.object is not None:
        labels = attributes.object["metadata"].get("labels") or {}
    else:
        found = await namespaces.find("", name)
        if found is None:
            return errors.not_found(GroupResource("", "namespaces"), name)
        labels = found["metadata"].get("labels") or {}
    return selector.matches(labels)


def selects_object(selector: Selector, attributes: Attributes) -> bool:
    """Whether the object, or what it was before, is selected."""
    if selector.empty:
        return True
    return any(
        obj is not None and "metadata" in obj and selector.matches((obj["metadata"] or {}).get("labels") or {})
        for obj in (attributes.object, attributes.old_object)
    )


def _match_rules(hook: Hook, attributes: Attributes, served: ServedVersions) -> Invocation | None:
    resource, subresource = attributes.resource, attributes.subresource
    operation, namespace = attributes.operation, attributes.namespace
    for rule in hook.rules:
        if matches_rule(rule, operation, resource, subresource, namespace):
            return Invocation(hook, resource, attributes.kind)
    if not hook.equivalent:
        return None
    equivalents = served.equivalents(attributes)
    for rule in hook.rules:
        for other in equivalents:
            if matches_rule(rule, operation, other.resource, subresource, namespace):
                return Invocation(hook, other.resource, other.kind)
    return None


def matches_rule(rule: Rule, operation: str, resource: GroupVersionResource, subresource: str, namespace: str) -> bool:
    """Whether a rule speaks of such a request."""
    if rule.scope != "*":
        in_namespace = resource != _NAMESPACES and bool(namespace)
        if in_namespace is not (rule.scope == "Namespaced"):
            return False
    return (
        _has(rule.operations, operation)
        and _has(rule.groups, resource.group)
        and _has(rule.versions, resource.version)
        and any(name in ("*", resource.resource) and sub in ("*", subresource) for name, sub in rule.resources)
    )


def _has(items: Iterable[str], wanted: str) -> bool:
    return wanted in items or "*" in items
