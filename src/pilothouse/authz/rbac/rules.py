"""Rules of roles: which requests they match, and what they consist of.

Rules are the plain dicts of the API. ``CompiledRules`` is what a role's rules become once, when the role changes, so
that a check is a handful of dict lookups whatever the number of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

Rule = dict[str, Any]
# Object names that a grant is limited to; None is every name.
Names = frozenset[str] | None


_Scope = tuple[frozenset[str], Names]
"""Verbs, and the names they are limited to."""
_FEW: Final = 64


class CompiledRules:
    """The rules of one role, indexed by what a request names.

    A rule with many groups and many resources means each pair of them, a thousand million for a megabyte: such rules
    are gone through instead.
    """

    __slots__ = ("_path_prefixes", "_paths", "_resources", "_wide", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._resources: dict[tuple[str, str], list[_Scope]] = {}
        self._wide: list[tuple[frozenset[str], frozenset[str], _Scope]] = []
        self._paths: dict[str, list[frozenset[str]]] = {}
        self._path_prefixes: list[tuple[str, frozenset[str]]] = []
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        verbs = frozenset(rule.get("verbs") or ())
        names = frozenset(rule.get("resourceNames") or ()) or None
        groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
        if len(groups) * len(resources) > max(_FEW, len(groups) + len(resources)):
            self._wide.append((frozenset(groups), frozenset(resources), (verbs, names)))
        else:
            for group in groups:
                for resource in resources:
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
        for groups, resources, (verbs, names) in self._wide:
            if (group in groups or "*" in groups) and (verb in verbs or "*" in verbs):
                if resources.isdisjoint(tokens):
                    continue
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
