"""The catalogue of built-in types: `struct("core.v1.PodSpec")` gives the schema of that type.

The catalogue is one text file, a block a type and a line a field:

    core.v1.Container
      ports []core.v1.ContainerPort 6 o patch=merge key=containerPort list=map:containerPort,protocol

that is: JSON name, Go type, protobuf number, then flags: ``o`` omitempty, ``oz`` omitzero, ``req`` required, ``def=``
schema default, ``patch=``/``key=`` strategic merge, ``list=``/``map=`` structured merge. ``@inline`` takes in another
struct's fields, ``@object`` stands for kind and apiVersion. Blocks are parsed when first asked for. Types of versions
that are served no more are in a second file, which is read when ``apis.legacy`` is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

from pilothouse.apis import catalogue
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Scalar, Special, Struct, Type

_SCALARS = frozenset({"string", "bool", "int32", "int64", "uint64", "uint8", "float64", "bytes"})
_SPECIALS = {
    "Quantity": "resource.Quantity",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "Duration": "v1.Duration",
    "IntOrString": "intstr.IntOrString",
    "RawExtension": "runtime.RawExtension",
    "FieldsV1": "v1.FieldsV1",
    "JSON": "v1.JSON",
    "SchemaOrBool": "v1.JSONSchemaPropsOrBool",
    "SchemaOrArray": "v1.JSONSchemaPropsOrArray",
    "SchemaOrStringArray": "v1.JSONSchemaPropsOrStringArray",
}


@cache
def _blocks() -> dict[str, str]:
    return _read_blocks("types.txt")


def _read_blocks(file: str) -> dict[str, str]:
    blocks = {}
    for block in catalogue.read(file).rstrip("\n").split("\n\n"):
        head = block.partition("\n")[0]
        blocks[head.partition(" ")[0]] = block
    return blocks


@cache
def add_legacy() -> None:
    """Let the catalogue know the types that only legacy versions have."""
    added = _read_blocks("legacy_types.txt")
    _blocks().update(added)
    _packages().update(_packages_of(added))


def names() -> list[str]:
    """The names of all catalogued types."""
    return list(_blocks())


def exists(name: str) -> bool:
    """Whether the catalogue has a type of this name."""
    return name in _blocks()


@cache
def struct(name: str) -> Struct:
    """The schema of a type, e.g. ``core.v1.Pod``. Unknown names raise ``KeyError``."""
    head, *lines = _blocks()[name].split("\n")
    lines = [line for line in lines if line]
    flags = dict(flag.partition("=")[::2] for flag in head.split(" ")[1:])
    package, _, short = name.rpartition(".")
    made = Struct(
        name,
        lambda: _members(lines),
        go=f"{package.rpartition('.')[2]}.{short}",
        map_type=flags.get("map", ""),
    )
    made.is_object = "  @object" in lines
    if "unions" in flags:
        made.unions = json.loads(flags["unions"])
    return made


def _members(lines: list[str]) -> list[Field | Inline]:
    members: list[Field | Inline] = []
    for line in lines:
        if line == "  @object":
            members += [_plain("kind"), _plain("apiVersion")]
        elif line.startswith("  @inline "):
            _, name, number = line.split()
            members.append(Inline(struct(name.lstrip("*").rpartition("=")[2]), int(number)))
        else:
            members.append(_field(line))
    return members


def _plain(name: str) -> Field:
    field = Field(name, Scalar("string"))
    field.omit_empty = True
    return field


def _field(line: str) -> Field:
    name, expression, number, *flags = line.split()
    pointer = expression.startswith("*")
    field = Field(name, parse_type(expression[1:] if pointer else expression), number=int(number), pointer=pointer)
    for flag in flags:
        key, _, value = flag.partition("=")
        match key:
            case "o":
                field.omit_empty = True
            case "oz":
                field.omit_zero = True
            case "req":
                field.required = True
            case "def":
                field.default = json.loads(value)
            case "list":
                field.list_type, _, keys = value.partition(":")
                field.list_keys = tuple(keys.split(",")) if keys else ()
            case "map":
                field.map_type = value
            case "patch":
                field.patch = frozenset(value.split(","))
            case "key":
                field.merge_key = value
            case "proto":
                field.proto_name = value
            case _:
                raise ValueError(f"unknown flag {flag!r} in the catalogue")
    return field


@cache
def parse_type(expression: str) -> Type:
    """Read a catalogue type expression: ``[]core.v1.Container``, ``map[string]Quantity``, ``v1.PodPhase=string``."""
    name = ""
    while "=" in expression and not expression.startswith(("[", "map[", "*")):
        name, _, expression = expression.partition("=")
    expression = expression.removeprefix("*")
    if expression.startswith("[]"):
        return ListOf(parse_type(expression[2:]), name)
    if expression.startswith("map["):
        key, _, value = expression[4:].partition("]")
        return MapOf(parse_type(value), name, key_go=key.partition("=")[0])
    if expression in _SCALARS:
        return Scalar(expression, name)
    if expression in _SPECIALS:
        holds = _definition_schema if expression.startswith("SchemaOr") else None
        return Special(expression, _SPECIALS[expression], holds)
    return struct(expression)


def _definition_schema() -> Struct:
    return struct("apiextensions.v1.JSONSchemaProps")


_GROUPS = {
    "core": "",
    "meta": "meta.k8s.io",
    "apiserverinternal": "internal.apiserver.k8s.io",
    "flowcontrol": "flowcontrol.apiserver.k8s.io",
    "rbac": "rbac.authorization.k8s.io",
    "audit": "audit.k8s.io",
}
_BARE_GROUPS = frozenset({"apps", "autoscaling", "batch", "policy", "extensions"})
_SHARED_KINDS = frozenset({"Status", "DeleteOptions", "APIGroupList", "APIGroup", "APIResourceList", "APIVersions"})


def group_of(package: str) -> str:
    """The API group of a catalogue package."""
    if package in _BARE_GROUPS:
        return package
    return _GROUPS.get(package, f"{package}.k8s.io")


@cache
def _packages() -> dict[GroupVersion, str]:
    return _packages_of(_blocks())


def _packages_of(names: Iterable[str]) -> dict[GroupVersion, str]:
    found = {}
    for name in names:
        package, version, _ = name.split(".")
        found[GroupVersion(group_of(package), version)] = f"{package}.{version}"
    return found


def find_kind(gvk: GroupVersionKind) -> Struct | None:
    """The type of a kind, None when the catalogue has no such object kind. Remembers nothing that clients make up."""
    package = _packages().get(gvk.group_version)
    if (gvk.kind in _SHARED_KINDS or (gvk.kind, gvk.group) == ("List", "")) and gvk.version == "v1":
        package = "meta.v1"
    if package is None or not exists(f"{package}.{gvk.kind}"):
        return None
    made = struct(f"{package}.{gvk.kind}")
    return made if made.is_object else None


def struct_of(api_version: str, kind: str) -> Struct:
    """The type of an object that says what it is. Unknown ones raise ``KeyError``."""
    gv = parse_group_version(api_version)
    made = find_kind(GroupVersionKind(gv.group, gv.version, kind))
    if made is None:
        raise KeyError(f"{api_version}, Kind={kind}")
    return made
