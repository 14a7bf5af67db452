"""Which requests a policy or a binding speaks of: selectors and rules as of webhooks, names, and rules that exclude."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pilothouse.admission.objects import Objects
from pilothouse.admission.versions import ServedVersions
from pilothouse.admission.webhooks.hooks import EQUIVALENT, Rule, read_rule, read_selector
from pilothouse.admission.webhooks.matching import (
    matches_rule,
    selects_namespace,
    selects_object,
)
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.labels import Selector

_OWN: Final = frozenset(
    {
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule that may be about some names only."""

    rule: Rule
    names: frozenset[str]

    def covers(self, attributes: Attributes, resource: GroupVersionResource) -> bool:
        """Whether it speaks of a request, were it made to a resource."""
        if not matches_rule(self.rule, attributes.operation, resource, attributes.subresource, attributes.namespace):
            return False
        return not self.names or attributes.name in self.names


class Match(NamedTuple):
    """The version in which a policy wants to see a request."""

    resource: GroupVersionResource
    kind: GroupVersionKind


@dataclass(frozen=True, slots=True)
class Criteria:
    """Match constraints."""

    namespaces: Selector
    objects: Selector
    rules: tuple[NamedRule, ...]
    excluded: tuple[NamedRule, ...]
    equivalent: bool

    async def match(self, attributes: Attributes, namespaces: Objects, served: ServedVersions) -> Match | None:
        """The version to show a request in, None if it is not meant; raises the 404 of a namespace."""
        selected = await selects_namespace(self.namespaces, attributes, namespaces)
        if selected is False or not selects_object(self.objects, attributes):
            return None
        if self.excluded and self._find(self.excluded, attributes, served) is not None:
            return None
        if self.rules:
            found = self._find(self.rules, attributes, served)
        else:
            found = Match(attributes.resource, attributes.kind)
        if found is not None and isinstance(selected, errors.StatusError):
            raise selected
        return found

    def _find(self, rules: tuple[NamedRule, ...], attributes: Attributes, served: ServedVersions) -> Match | None:
        resource = attributes.resource
        for rule in rules:
            if rule.covers(attributes, resource):
                return Match(resource, attributes.kind)
        if self.equivalent:
            for rule in rules:
                for other in served.equivalents(attributes):
                    if rule.covers(attributes, other.resource):
                        return Match(other.resource, other.kind)
        return None


def read_criteria(raw: dict[str, Any]) -> Criteria:
    """Match constraints as they are stored."""
    return Criteria(
        namespaces=read_selector(raw.get("namespaceSelector")),
        objects=read_selector(raw.get("objectSelector")),
        rules=_read_rules(raw.get("resourceRules")),
        excluded=_read_rules(raw.get("excludeResourceRules")),
        equivalent=raw.get("matchPolicy") == EQUIVALENT,
    )


def _read_rules(raw: list[dict[str, Any]] | None) -> tuple[NamedRule, ...]:
    return tuple(NamedRule(read_rule(each), frozenset(each.get("resourceNames") or ())) for each in raw or ())


def is_policy(resource: GroupVersionResource | GroupResource) -> bool:
    """Whether only policies from files see a resource: nobody could repair others."""
    return resource.group == "admissionregistration.k8s.io" and resource.resource in _OWN
