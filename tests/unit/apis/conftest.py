"""A small driver for built-in kinds: what a write makes of an object, or the errors it is refused for."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.ages import Age, Due
from pilothouse.apis.gated import drop_gated, find_gated
from pilothouse.apis.gates import enabled_gates
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.times import now_instant
from pilothouse.registry.rest.before_create import before_create
from pilothouse.registry.rest.before_update import before_update

NOW = "2026-01-02T03:04:05Z"


class Kind:
    """One resource: ``create``, ``update`` and ``errors`` work as the server would, without storing anything."""

    def __init__(self, resource: Resource, gates: frozenset[str] | None = None) -> None:
        self.resource = resource
        self.struct = types.struct(resource.type_name)
        self.strategy = strategy_for(resource, gates)
        self._gated = None if gates is None else find_gated(resource.type_name, gates)
        self.warnings: list[str] = []

    def decode(self, body: Object) -> Object:
        obj, _ = decode(self.struct, {"metadata": {"name": "a"}, **copy.deepcopy(body)})
        return obj

    def create(self, body: Object) -> Object:
        obj = self.decode(body)
        ctx = self._context()
        self.strategy.default(obj)
        if self._gated is not None:
            drop_gated(self._gated, obj, None)
        before_create(self.resource, self.strategy, ctx, obj)
        self.strategy.read_back(obj)
        self._check_form(obj)
        self.warnings = ctx.warnings
        return obj

    def update(self, stored: Object, body: Object, subresource: str = "") -> Object:
        """``body`` is merged over the stored object, two levels deep."""
        obj = copy.deepcopy(stored)
        for key, value in body.items():
            if value is None:
                obj.pop(key, None)
            else:
                obj[key] = {**obj.get(key, {}), **value} if isinstance(value, dict) else value
        obj["metadata"]["resourceVersion"] = "1"
        obj, _ = decode(self.struct, obj)
        strategy: Strategy = self.strategy.subresource(subresource) if subresource else self.strategy
        ctx = self._context()
        old = copy.deepcopy(stored)
        strategy.default(obj)
        if self._gated is not None:
            drop_gated(self._gated, obj, old)
        before_update(self.resource, strategy, ctx, obj, old)
        strategy.read_back(obj)
        assert old == stored, "an update must not change the old object"
        self._check_form(obj)
        self.warnings = ctx.warnings
        return obj

    def errors(self, body: Object, stored: Object | None = None, subresource: str = "") -> list[str]:
        """``field: message`` of every error; nothing when the write is accepted."""
        try:
            if stored is None:
                self.create(body)
            else:
                self.update(stored, body, subresource)
        except StatusError as error:
            return [f"{cause['field']}: {cause['message']}" for cause in (error.details or {})["causes"]]
        return []

    def row(self, obj: Object) -> list[Any]:
        cells = [column.cell(obj) for column in self.strategy.columns]
        return [cell.text(now_instant()) if isinstance(cell, Age | Due) else cell for cell in cells]

    def _context(self) -> Context:
        return Context(namespace="ns" if self.resource.namespaced else "", now=NOW)

    def _check_form(self, obj: Object) -> None:
        """What is stored must be what Go would write, and defaulting it again must change nothing."""
        again, _ = decode(self.struct, obj)
        assert again == obj
        again = copy.deepcopy(obj)
        self.strategy.default(again)
        assert again == obj


@pytest.fixture
def kind() -> Any:
    """``kind("v1", "services")``; ``kind("v1", "pods", "SomeGate=true")`` where gates are switched."""

    def find(group_version: str, name: str, *switched: str) -> Kind:
        rows = table()[parse_group_version(group_version)].resources
        gates = enabled_gates({gate: on == "true" for gate, _, on in (each.partition("=") for each in switched)})
        return Kind(next(row for row in rows if row.name == name), gates if switched else None)

    return find
