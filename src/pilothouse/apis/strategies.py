"""Finding the strategy of a resource: its group's own, or one made from what the table and the catalogue say.

A group folder with behaviour of its own has a module ``strategy`` with a dictionary ``STRATEGIES`` from resource names
to classes. It is imported when the first of its resources is installed with storage, never at start-up.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from pilothouse.apis import types
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import PlainStrategy, StatusStrategy, Strategy


@cache
def _group_strategies(package: str) -> dict[str, type[Strategy]]:
    name = f"pilothouse.apis.{package}.strategy"
    if find_spec(f"pilothouse.apis.{package}") is None or find_spec(name) is None:
        return {}
    strategies: dict[str, type[Strategy]] = import_module(name).STRATEGIES
    return strategies


def strategy_for(resource: Resource, gates: frozenset[str] | None = None) -> Strategy:
    """The strategy of a resource's objects with these feature gates on; the usual ones unless told."""
    found = _group_strategies(resource.package).get(resource.name)
    return found(gates) if found is not None else _plain(resource)(gates)


def _plain(resource: Resource) -> type[Strategy]:
    """What can be told without knowing the kind: with a status of its own, writes elsewhere leave the status alone."""
    fields = types.struct(resource.type_name).fields
    with_status = any(sub.name == "status" for sub in resource.subresources)

    class Plain(PlainStrategy):
        """A resource without behaviour of its own."""

        subresources = {"status": StatusStrategy} if with_status else {}
        generation = with_status and "spec" in fields
        reset_fields = ("status",) if with_status else ()

    return Plain
