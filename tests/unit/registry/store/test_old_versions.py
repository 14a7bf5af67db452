"""Objects as servers of years ago have kept them, recorded with what kube-apiserver 1.37 shows for each."""

import json
from pathlib import Path

import pytest

from pilothouse.apis import types
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.machinery import protobuf
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.decoding import decode
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.stored_form import BuiltInForm, MediaType
from pilothouse.storage.cacher import Cacher

ROWS = [json.loads(line) for line in (Path(__file__).parent / "old_values.jsonl").read_text().splitlines()]


def resource_of(row) -> Resource:
    gv, kind = parse_group_version(row["object"]["apiVersion"]), row["object"]["kind"]
    return next(each for each in table()[gv].resources if each.kind == kind and each.is_stored)


def values(row):
    """What is stored, in both forms."""
    stored = row["stored"]
    gv = parse_group_version(stored["apiVersion"])
    struct = types.struct_of(stored["apiVersion"], stored["kind"])
    obj = decode(struct, {name: value for name, value in stored.items() if name not in ("kind", "apiVersion")})[0]
    yield protobuf.encode(struct, obj, GroupVersionKind(gv.group, gv.version, stored["kind"]))
    yield json.dumps(stored).encode() + b"\n"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['stored']['apiVersion']} {row['stored']['kind']}")
def test_what_is_stored_in_an_old_version_is_read_as_it_was_meant(row, cacher: Cacher) -> None:
    resource = resource_of(row)
    form = BuiltInForm(resource, strategy_for(resource).default, MediaType.PROTOBUF)
    codec = StorageFactory(cacher, media=MediaType.PROTOBUF).codec(resource.group, resource.version, resource.name)
    wanted = {name: value for name, value in row["object"].items() if name not in ("kind", "apiVersion")}
    for value in values(row):
        obj, texts = form.read(value)
        assert json.loads(codec.encode(obj, texts)) == wanted
