"""Objects made from the schema of every built-in kind: refused with the fields at fault, or stored and read back."""

from __future__ import annotations

import copy
import random

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.resources import Resource, hub_row, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.emptied import Emptied, forget, note_always_written
from pilothouse.machinery.schema.null_lists import settle
from pilothouse.registry.rest.before_create import before_create
from pilothouse.registry.rest.before_update import before_update
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.testing.made_objects import ANCHORS, Maker, accept

NOW = "2026-01-02T03:04:05Z"

CHANCES = [0.0, 0.1, 0.25, 0.5]
RESOURCES = [
    resource
    for version in table().values()
    for resource in version.resources
    if resource.is_stored and resource.hub == resource.group_version
]
CONVERTED = [
    resource
    for version in table().values()
    for resource in version.resources
    if resource.is_stored and converters_for(resource)[0] is not None
]
CONVERTED_ANCHORS: dict[str, Object] = {
    "events": {
        "eventTime": "2024-05-01T12:00:00.123456Z",
        "regarding.namespace": "ns",
        "reportingController": "example.com/a",
        "type": "Normal",
    },
    "horizontalpodautoscalers": {"spec.scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
}
PROVES_ITS_KEY = "podcertificaterequests"
"""The one kind no object of which is accepted here: it carries a signature over the pod's uid."""


class Kind:
    """One resource: takes objects through everything that a write does to them, without storing anything."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.struct = types.struct(resource.type_name)
        self.strategy = strategy_for(resource)
        fields = self.strategy.fields if self.strategy.field_labels else None
        self.codec = ObjectCodec(resource.kind, str(resource.group_version), fields, struct=self.struct)

    def context(self) -> Context:
        return Context(namespace="ns" if self.resource.namespaced else "", now=NOW, user="me")

    def _decoded(self, body: Object) -> Object:
        obj, _ = decode(self.struct, body, noting=True)
        if isinstance(obj, Emptied):
            note_always_written(self.struct, obj)
        return obj

    def create(self, body: Object) -> Object:
        """What is stored, as it reads back."""
        obj = self._decoded(body)
        self.strategy.default(obj)
        before_create(self.resource, self.strategy, self.context(), obj)
        self.strategy.read_back(obj)
        return self.store(obj)

    def update(self, strategy: Strategy, stored: Object, body: Object) -> Object:
        obj = self._decoded(body)
        kept = copy.deepcopy(stored)
        strategy.default(obj)
        before_update(self.resource, strategy, self.context(), obj, stored)
        strategy.read_back(obj)
        assert stored == kept, "an update must not change the old object"
        return self.store(obj)

    def store(self, obj: Object) -> Object:
        """What reads back of an accepted object, which must be just what was accepted, in its final form."""
        if isinstance(obj, Emptied):
            forget(obj)
            self.strategy.default(obj)
        entry = self.codec.entry("/key", self.codec.to_stored(self.codec.encode(obj)), 7)
        accepted = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}}
        back: Object = orjson.loads(entry.data)
        assert back == settle(self.struct, {k: v for k, v in accepted.items() if k not in ("kind", "apiVersion")})
        assert all(isinstance(value, str) for value in entry.fields.values())
        again, unknown = decode(self.struct, back)
        assert not unknown
        assert again == back, "decoding must leave a stored object as it is"
        self.strategy.default(again)
        assert again == back, "defaulting again must change nothing"
        for column in self.strategy.columns:
            column.cell(back)
        return back


def go_through(resource: Resource, seed: int, chance: float) -> bool:
    """Take one object from its making to its updates; whether it was ever accepted."""
    kind = Kind(resource)
    maker = Maker(random.Random(seed), chance)
    body = maker.struct(kind.struct)
    body["metadata"] = {**body.get("metadata", {}), "name": "a"}
    stored = accept(kind.create, kind.struct, body, maker, ANCHORS.get(resource.name, {}))
    if stored is None:
        return False
    assert kind.update(kind.strategy, stored, copy.deepcopy(stored)) == stored
    if "status" in kind.strategy.subresources:
        status = kind.strategy.subresources["status"]()
        changed = {**stored, "status": maker.value(kind.struct.fields["status"].type)}
        reported = accept(lambda body: kind.update(status, stored, body), kind.struct, changed, maker, {})
        if reported is not None:
            assert kind.update(status, reported, copy.deepcopy(reported)) == reported
    return True


def name_of(resource: Resource) -> str:
    return f"{resource.name}.{resource.group}".rstrip(".")


@pytest.mark.parametrize("resource", RESOURCES, ids=name_of)
@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32), chance=st.sampled_from(CHANCES))
def test_an_object_is_refused_by_field_or_stored_as_is(resource: Resource, seed: int, chance: float) -> None:
    go_through(resource, seed, chance)


@pytest.mark.soak
@pytest.mark.parametrize("resource", RESOURCES, ids=name_of)
def test_many_objects_are_refused_by_field_or_stored_as_is(resource: Resource) -> None:
    for seed in range(400):
        go_through(resource, seed, CHANCES[seed % len(CHANCES)])


@pytest.mark.parametrize("resource", [r for r in RESOURCES if r.name != PROVES_ITS_KEY], ids=name_of)
def test_some_object_of_every_kind_is_accepted(resource: Resource) -> None:
    assert any(go_through(resource, seed, 0.1) for seed in range(20))


class ConvertedKind(Kind):
    """A kind at a version of another shape than the one it is kept in."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(hub_row(resource))
        self.to_hub, self.from_hub = converters_for(resource)
        self.served = types.struct(resource.type_name)
        if resource.group != self.resource.group:
            self.resource, self.strategy = resource, strategy_for(resource)

    def create(self, body: Object) -> Object:
        obj, _ = decode(self.served, body)
        obj = self.to_hub(obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        self.strategy.default(obj)
        before_create(self.resource, self.strategy, self.context(), obj)
        self.strategy.read_back(obj)
        return self.store(obj)


@pytest.mark.parametrize("resource", CONVERTED, ids=lambda resource: f"{resource.name}.{resource.group_version}")
@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32), chance=st.sampled_from(CHANCES))
def test_an_object_of_another_version_is_kept_and_shown_again(resource: Resource, seed: int, chance: float) -> None:
    kind = ConvertedKind(resource)
    maker = Maker(random.Random(seed), chance)
    body = {**maker.struct(kind.served), "metadata": {"name": "a"}}
    stored = accept(kind.create, kind.served, body, maker, CONVERTED_ANCHORS.get(resource.name, {}))
    if stored is not None:
        shown = kind.from_hub(copy.deepcopy(stored))
        again, unknown = decode(kind.served, shown)
        assert not unknown
        assert again == shown
        assert decode(kind.struct, kind.to_hub(again))[0] == stored
