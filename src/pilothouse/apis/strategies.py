"""Finding the strategy of a resource: its group's own, or one made from what the table and the catalogue say.

A group folder with behaviour of its own has a module ``index`` with a dictionary ``STRATEGIES`` from resource names
to classes. A class is imported when its resource is first used, in a thread where a client is the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from pilothouse.apis import types
from pilothouse.apis.resources import Resource, hub_row
from pilothouse.apis.strategy import NamespaceLabels, PlainStrategy, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import GenerationRules


@cache
def _group_strategies(package: str) -> Mapping[str, type[Strategy]]:
    name = f"pilothouse.apis.{package}.index"
    if find_spec(f"pilothouse.apis.{package}") is None or find_spec(name) is None:
        return {}
    strategies: Mapping[str, type[Strategy]] = import_module(name).STRATEGIES
    return strategies


def strategy_for(
    resource: Resource, gates: frozenset[str] | None = None, labels_of: NamespaceLabels | None = None
) -> Strategy:
    """The strategy of a resource's objects with these feature gates on; the usual ones unless told."""
    return _class_for(resource)(gates, labels_of)


def import_rules(resource: Resource) -> None:
    """Import what the strategy of a resource's objects needs."""
    _class_for(hub_row(resource))
    _class_for(resource)


def has_own_rules(resource: Resource) -> bool:
    """Whether a version of a kind is written by rules of its own rather than those of the hub version."""
    return resource.hub != resource.group_version and _class_for(resource) is not _class_for(hub_row(resource))


def _class_for(resource: Resource) -> type[Strategy]:
    if resource.legacy:
        from pilothouse.apis.legacy.older import older_of

        own = older_of(resource).strategy
        if own is not None:
            return own
        if resource.hub != resource.group_version:
            return _class_for(hub_row(resource))
    return _group_strategies(resource.package).get(resource.name) or _plain(resource)


@cache
def _plain(resource: Resource) -> type[Strategy]:
    """What can be told without knowing the kind: with a status of its own, writes elsewhere leave the status alone."""
    fields = types.struct(resource.type_name).fields
    with_status = any(sub.name == "status" for sub in resource.subresources)

    class Plain(PlainStrategy):
        """A resource without behaviour of its own."""

        subresources = {"status": StatusStrategy} if with_status else {}
        generation_rules = GenerationRules(counted=with_status and "spec" in fields)
        reset_fields = ("status",) if with_status else ()

    return Plain
