"""Plausible values for any field of a built-in type, whether samples have it or not.

Where ``differential_samples`` shows what usual objects look like, this goes to the fields that they leave out: one that
is not there gets a value of its type, taken from what such fields hold in good and in bad objects.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from pilothouse.apis import types
from pilothouse.apis.enumerations import values_of
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type

_DEPTH = 4
_LEFT_ALONE = frozenset({"apiVersion", "kind", "metadata", "status", "globalDefault"})
"""Fields that say what the object is, and one that changes other conversations' pods."""
_WORDS = (
    "a", "a", "b", "a-b", "a.b", "A_b", "-a", "a.", "c", "v", "default", "1.2.3.4", "::1", "2001:db8::1", "10.0.0.0/8",
    "fd00::/64", "01.2.3.4", "/p", "/a/../b", "../b", "p/q", "a/b/c", "example.com/x", "kubernetes.io/x", "k8s.io/y",
    "80", "http", "", "x" * 64, "x" * 254, "$(A)", "$$", "100m", "*", "*.example", "2020-01-01T00:00:00Z", "é", "a b",
    "a=b", "localhost", "host.example", "https://h.example/p", "http://h", "tcp://h", "ANY", "None", "Always", "Never",
    "TCP", "ReadWriteOnce", "metadata.name", "spec.nodeName", "limits.cpu", "requests.memory", "cpu", "memory", "pods",
    "1", "0", "-1", "sha256:aa", "a@b", "system:x", "unix:///s", "Exists", "In", "true", "self.a > 1",
)  # fmt: skip
_INTEGERS = (0, 1, 1, 2, 5, -1, 10, 80, 100, 101, 443, 3600, 65535, 65536, 70000, 2**31 - 1, 86400 * 400)
_SPECIALS: dict[str, Sequence[Any]] = {
    "Quantity": ("1", "0", "-1", "1Gi", "100m", "1.5", "1e3", "0.0001", "1Ki", "10", "5G", "1.5Gi"),
    "Time": ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", None),
    "MicroTime": ("2020-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000001Z"),
    "Duration": ("1s", "1h", "0s", "-1s", "1m30s"),
    "IntOrString": (0, 1, -1, 80, "80", "http", "50%", "101%", "-1%", "a%", "", 70000, "A", "0%"),
    "RawExtension": ({}, {"a": 1}, {"apiVersion": "v1", "kind": "K"}, None),
}
_KEYS = (
    "a", "b", "app", "cpu", "memory", "a.b/c", "example.com/x", "kubernetes.io/x", "A b", "", "storage",
    "hugepages-2Mi", "k",
)  # fmt: skip


def structs_in(body: dict[str, Any]) -> list[tuple[dict[str, Any], Struct]]:
    """Every object within a sample that is a struct, with its type."""
    return list(_structs(body, types.struct_of(body["apiVersion"], body["kind"])))


def _structs(value: Any, of: Type) -> Iterator[tuple[dict[str, Any], Struct]]:
    if isinstance(of, Struct) and isinstance(value, dict):
        yield value, of
        for key, item in value.items():
            if key in of.fields and key not in ("status", "metadata"):
                yield from _structs(item, of.fields[key].type)
    elif isinstance(of, ListOf) and isinstance(value, list):
        for item in value:
            yield from _structs(item, of.item)
    elif isinstance(of, MapOf) and isinstance(value, dict):
        for item in value.values():
            yield from _structs(item, of.value)


def set_some_field(choice: random.Random, target: dict[str, Any], of: Struct) -> None:
    """Give an object one more field, or one of its fields another value."""
    names = [name for name in of.fields if name not in _LEFT_ALONE]
    if names:
        name = choice.choice(names)
        target[name] = _value_of_field(choice, of, of.fields[name], _DEPTH)


def status_of(choice: random.Random, body: dict[str, Any]) -> Any:
    """Some status of an object; an empty one where the kind has none."""
    of = types.struct_of(body["apiVersion"], body["kind"])
    return _value(choice, of.fields["status"].type, _DEPTH) if "status" in of.fields else {}


def some_of(choice: random.Random, type_name: str) -> dict[str, Any]:
    """Some value of a catalogued type."""
    return _struct(choice, types.struct(type_name), _DEPTH)


def _value_of_field(choice: random.Random, owner: Struct, field: Field, depth: int) -> Any:
    enumerated = values_of(owner.name).get(field.name)
    return _value(choice, field.type, depth, enumerated)


def _value(choice: random.Random, of: Type, depth: int, enumerated: Sequence[str] | None = None) -> Any:
    if isinstance(of, Scalar):
        return _scalar(choice, of.kind, enumerated)
    if isinstance(of, Special):
        return choice.choice(_SPECIALS.get(of.kind, ({},)))
    if isinstance(of, ListOf):
        return [_value(choice, of.item, depth - 1, enumerated) for _ in range(choice.choice((0, 1, 1, 1, 2, 2, 3)))]
    if isinstance(of, MapOf):
        count = choice.choice((0, 1, 1, 2))
        return {choice.choice(_KEYS): _value(choice, of.value, depth - 1, enumerated) for _ in range(count)}
    assert isinstance(of, Struct)
    return _struct(choice, of, depth)


def _scalar(choice: random.Random, kind: str, enumerated: Sequence[str] | None) -> Any:
    if kind == "bool":
        return choice.random() < 0.5
    if kind == "bytes":
        return choice.choice(("", "YQ==", "YWJj"))
    if kind == "float64":
        return choice.choice((0, 1, 0.5, -1))
    if kind != "string":
        return choice.choice(_INTEGERS) if kind != "uint8" else 1
    if enumerated and choice.random() < 0.85:
        return choice.choice(enumerated)
    return choice.choice(_WORDS)


def _struct(choice: random.Random, of: Struct, depth: int) -> dict[str, Any]:
    """What is required, mostly, and some of the rest."""
    fields = list(of.fields.values())
    likely = 2 / max(len(fields), 2) if depth > 0 else 0.0
    made: dict[str, Any] = {}
    for field in fields:
        wanted = field.required or not field.omit_empty
        if choice.random() < (0.93 if wanted else likely):
            made[field.name] = _value_of_field(choice, of, field, depth - 1)
    return made
