"""Whether rules that somebody holds cover those that somebody would grant.

A rule means each combination of its groups, resources, verbs and names, and each of them has to be covered by one rule
that is held. A rule of 6 KB has eight thousand million of them. So they are not made but asked for in boxes: as soon as
one held rule covers all that is left of a box, or all boxes with the same holders were covered before, nobody looks
inside. What is missing is told one by one, up to a number that nobody reads to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Final

from pilothouse.authz.rbac.rules import Rule

MOST_MISSING: Final = 20_000

_Axis = list[tuple[Rule, int]]
"""The values that one field of a rule may have, each with the held rules that cover it, as bits."""


def rules_covered(owned: Iterable[Rule], requested: Iterable[Rule], most: int = MOST_MISSING) -> list[Rule]:
    """The smallest parts of the requested rules that the owned ones do not cover; empty if all are covered."""
    owners = [_Owner(rule) for rule in owned]
    missing: list[Rule] = []
    for rule in requested:
        for axes in _boxes(owners, rule):
            for part in _Box(axes).missing():
                missing.append(part)
                if len(missing) >= most:
                    return missing
    return missing


def count_parts(rule: Rule) -> int:
    """How many combinations a rule means."""
    verbs = len(rule.get("verbs") or ())
    fields = [len(rule.get(field) or ()) for field in ("apiGroups", "resources")]
    names, paths = len(rule.get("resourceNames") or ()), len(rule.get("nonResourceURLs") or ())
    return verbs * (prod(fields) * max(1, names) + paths)


class _Owner:
    """A rule somebody holds."""

    __slots__ = ("_paths", "_subresources", "groups", "names", "resources", "verbs")

    def __init__(self, rule: Rule) -> None:
        self.verbs = frozenset(rule.get("verbs") or ())
        self.groups = frozenset(rule.get("apiGroups") or ())
        self.resources = frozenset(rule.get("resources") or ())
        self._subresources = any(resource.startswith("*/") for resource in self.resources)
        self.names = frozenset(rule.get("resourceNames") or ())
        self._paths: Sequence[str] = rule.get("nonResourceURLs") or ()

    def covers_verb(self, verb: str) -> bool:
        return verb in self.verbs or "*" in self.verbs

    def covers_group(self, group: str) -> bool:
        return group in self.groups or "*" in self.groups

    def covers_resource(self, resource: str) -> bool:
        if resource in self.resources or "*" in self.resources:
            return True
        return self._subresources and "/" in resource and f"*/{resource.partition('/')[2]}" in self.resources

    def covers_name(self, name: str) -> bool:
        return not self.names or name in self.names

    def covers_path(self, path: str) -> bool:
        return any(path == held or (held.endswith("*") and path.startswith(held.rstrip("*"))) for held in self._paths)

    def concerns(self, verbs: frozenset[str], groups: frozenset[str]) -> bool:
        """Whether it can cover any part of a rule with these."""
        return ("*" in self.verbs or not self.verbs.isdisjoint(verbs)) and (
            "*" in self.groups or not self.groups.isdisjoint(groups)
        )


def _boxes(owners: list[_Owner], rule: Rule) -> Iterator[list[_Axis]]:
    """All combinations of a rule: those of resources, then those of paths."""
    verbs, names, paths = rule.get("verbs") or (), rule.get("resourceNames") or (), rule.get("nonResourceURLs") or ()
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if groups and resources and verbs:
        wanted = frozenset(verbs), frozenset(groups)
        near = [owner for owner in owners if owner.concerns(*wanted)]
        every_name: _Axis = [({}, _bits(not owner.names for owner in near))]
        yield [
            [({"apiGroups": [each]}, _bits(owner.covers_group(each) for owner in near)) for each in groups],
            [({"resources": [each]}, _bits(owner.covers_resource(each) for owner in near)) for each in resources],
            [({"verbs": [each]}, _bits(owner.covers_verb(each) for owner in near)) for each in verbs],
            [({"resourceNames": [each]}, _bits(owner.covers_name(each) for owner in near)) for each in names]
            or every_name,
        ]
    if paths and verbs:
        near = [owner for owner in owners if not owner.names]
        yield [
            [({"nonResourceURLs": [each]}, _bits(owner.covers_path(each) for owner in near)) for each in paths],
            [({"verbs": [each]}, _bits(owner.covers_verb(each) for owner in near)) for each in verbs],
        ]


def _bits(answers: Iterable[bool]) -> int:
    return sum(1 << position for position, answer in enumerate(answers) if answer)


class _Box:
    """The combinations of some axes."""

    def __init__(self, axes: list[_Axis]) -> None:
        self._axes = axes
        self._kinds = [{bits for _, bits in axis} for axis in axes]
        """Values that the same rules cover differ in nothing."""
        self._whole = [-1] * (len(axes) + 1)
        """The rules that cover all values of an axis and of those behind it."""
        for level in range(len(axes) - 1, -1, -1):
            whole = self._whole[level + 1]
            for bits in self._kinds[level]:
                whole &= bits
            self._whole[level] = whole
        self._known: dict[tuple[int, int], bool] = {}

    def missing(self) -> Iterator[Rule]:
        """The combinations that nobody covers, in the order in which the rule names them."""
        return self._missing(0, -1, {})

    def _missing(self, level: int, bits: int, part: Rule) -> Iterator[Rule]:
        if self._is_covered(level, bits):
            return
        if level == len(self._axes):
            yield part
            return
        for piece, each in self._axes[level]:
            yield from self._missing(level + 1, bits & each, {**part, **piece})

    def _is_covered(self, level: int, bits: int) -> bool:
        """Whether everything from an axis on is covered by the rules that cover what was chosen before."""
        if bits & self._whole[level]:
            return True
        if not bits or level == len(self._axes):
            return False
        known = self._known.get((level, bits))
        if known is None:
            known = all(self._is_covered(level + 1, bits & kind) for kind in self._kinds[level])
            self._known[level, bits] = known
        return known
