"""Rules of roles: which requests they match, and which rules cover which.

Rules are the plain dicts of the API. ``CompiledRules`` is what a role's rules become once, when the role changes, so
that a check is a handful of dict lookups whatever the number of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Rule = dict[str, Any]
# Object names that a grant is limited to; None is every name.
Names = frozenset[str] | None


class CompiledRules:
    """The rules of one role, indexed by what a request names."""

    __slots__ = ("_path_prefixes", "_paths", "_resources", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._resources: dict[tuple[str, str], list[tuple[frozenset[str], Names]]] = {}
        self._paths: dict[str, list[frozenset[str]]] = {}
        self._path_prefixes: list[tuple[str, frozenset[str]]] = []
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        verbs = frozenset(rule.get("verbs") or ())
        names = frozenset(rule.get("resourceNames") or ()) or None
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                self._resources.setdefault((group, resource), []).append((verbs, names))
        for path in rule.get("nonResourceURLs") or ():
            self._paths.setdefault(path, []).append(verbs)
            if path.endswith("*"):
                self._path_prefixes.append((path.rstrip("*"), verbs))

    def names_for(self, verb: str, group: str, resource: str, subresource: str) -> tuple[bool, frozenset[str]]:
        """Whether the request is allowed for any name, and else the names it is allowed for."""
        tokens = [resource, "*"]
        if subresource:
            tokens = [f"{resource}/{subresource}", "*", f"*/{subresource}"]
        found: set[str] = set()
        for rule_group in (group, "*"):
            for token in tokens:
                for verbs, names in self._resources.get((rule_group, token), ()):
                    if verb in verbs or "*" in verbs:
                        if names is None:
                            return True, frozenset()
                        found |= names
        return False, frozenset(found)

    def allows_path(self, verb: str, path: str) -> bool:
        """Whether a request to a path that is no resource is allowed."""
        for verbs in self._paths.get(path, ()):
            if verb in verbs or "*" in verbs:
                return True
        return any(path.startswith(prefix) and (verb in verbs or "*" in verbs) for prefix, verbs in self._path_prefixes)


def rules_covered(owned: Iterable[Rule], requested: Iterable[Rule]) -> list[Rule]:
    """The smallest parts of the requested rules that the owned ones do not cover; empty if all are covered."""
    owners = [_Owner(rule) for rule in owned]
    return [part for rule in requested for part in break_down(rule) if not any(owner.covers(part) for owner in owners)]


def break_down(rule: Rule) -> list[Rule]:
    """Equivalent rules with one verb, and one resource (and at most one name) or one path each."""
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ()
    parts: list[Rule] = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part: Rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                parts.extend({**part, "resourceNames": [name]} for name in names)
                if not names:
                    parts.append(part)
    for path in rule.get("nonResourceURLs") or ():
        parts.extend({"nonResourceURLs": [path], "verbs": [verb]} for verb in verbs)
    return parts


class _Owner:
    """A rule somebody holds, prepared for the question whether it covers a broken-down part."""

    __slots__ = ("_groups", "_names", "_paths", "_resources", "_verbs")

    def __init__(self, rule: Rule) -> None:
        self._verbs = frozenset(rule.get("verbs") or ())
        self._groups = frozenset(rule.get("apiGroups") or ())
        self._resources = frozenset(rule.get("resources") or ())
        self._names = frozenset(rule.get("resourceNames") or ())
        self._paths: Sequence[str] = rule.get("nonResourceURLs") or ()

    def covers(self, part: Rule) -> bool:
        if not _has("*", part["verbs"], self._verbs):
            return False
        names = part.get("resourceNames", ())
        if self._names and not (names and self._names.issuperset(names)):
            return False
        paths = part.get("nonResourceURLs", ())
        if paths:
            return any(_path_covers(owner, paths[0]) for owner in self._paths)
        return _has("*", part["apiGroups"], self._groups) and self._covers_resource(part["resources"][0])

    def _covers_resource(self, resource: str) -> bool:
        if "*" in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources


def _has(wildcard: str, wanted: Sequence[str], owned: frozenset[str]) -> bool:
    return wildcard in owned or owned.issuperset(wanted)


def _path_covers(owner: str, path: str) -> bool:
    return owner == path or (owner.endswith("*") and path.startswith(owner.rstrip("*")))


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Join broken-down rules that differ only in their verb."""
    compacted: list[Rule] = []
    simple: dict[tuple[str, str, tuple[str, ...]], Rule] = {}
    for rule in rules:
        if rule.get("nonResourceURLs") or len(rule.get("resourceNames", ())) > 1:
            compacted.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], tuple(rule.get("resourceNames", ())))
        known = simple.get(key)
        if known is None:
            simple[key] = {**rule, "verbs": list(rule["verbs"])}
        else:
            known["verbs"].extend(rule["verbs"])
    compacted.extend(simple.values())
    return compacted
