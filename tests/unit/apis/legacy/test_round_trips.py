"""Every legacy kind through the version it is kept in and back: what came through once comes through always."""

from __future__ import annotations

import copy
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.legacy.older import converters_of, older_of
from pilothouse.apis.resources import Resource, table
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Special, Struct, Type

SPECIAL: dict[str, Any] = {
    "Quantity": "1",
    "Time": "2024-05-01T12:00:00Z",
    "MicroTime": "2024-05-01T12:00:00.123456Z",
    "Duration": "1s",
    "IntOrString": 80,
    "RawExtension": {"a": 1},
    "JSON": {"a": 1},
    "SchemaOrBool": True,
    "SchemaOrArray": {"type": "integer"},
    "SchemaOrStringArray": ["a"],
    "FieldsV1": {},
}
LABELS = ("a", "topology.kubernetes.io/zone", "kubernetes.io/hostname")


class Maker:
    """Makes values that fit a schema."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, kind: Type, depth: int = 0) -> Any:
        if isinstance(kind, Struct):
            chance = 0.6 if depth < 5 else 0.2 if depth < 8 else 0
            fields = (field for field in kind.fields.values() if self._random.random() < chance)
            return {field.name: self.make(field.type, depth + 1) for field in fields}
        if isinstance(kind, ListOf):
            return [self.make(kind.item, depth + 1) for _ in range(self._random.randrange(3))]
        if isinstance(kind, MapOf):
            return {self._random.choice(LABELS): self.make(kind.value, depth + 1)}
        if isinstance(kind, Special):
            return copy.deepcopy(SPECIAL[kind.kind])
        assert isinstance(kind, Scalar)
        return {"string": self._random.choice(("", "a", "User", "*")), "bool": True, "bytes": "YQ=="}.get(kind.kind, 3)


def made(row: Resource, seed: int) -> dict[str, Any] | None:
    """An object as a client's body is read; None for one that the version refuses."""
    struct = types.struct(row.type_name)
    body = {**Maker(seed).make(struct), "metadata": {"name": "a", "annotations": {"b": "c"}}}
    body.pop("kind", None)
    body.pop("apiVersion", None)
    obj: dict[str, Any] = decode(struct, body)[0]
    older = older_of(row)
    if older.default is not None:
        older.default(obj)
    return obj


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_round_trips(seed: int) -> None:
    for version in table().values():
        for row in version.resources:
            to_hub, from_hub = converters_of(row) if row.legacy and row.is_stored else (None, None)
            if to_hub is None or from_hub is None:
                continue
            try:
                kept = to_hub(made(row, seed) or {})
            except StatusError:
                continue
            before = copy.deepcopy(kept)
            shown = from_hub(kept)
            assert kept == before, f"{row.group_version} {row.name} changes what is stored"
            again = to_hub(copy.deepcopy(shown))
            assert from_hub(again) == shown, f"{row.group_version} {row.name}"
