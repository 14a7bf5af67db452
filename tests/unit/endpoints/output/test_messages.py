"""Messages that were kept are those that would be made; a list is what encoding it as a whole gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pilothouse.apis import types
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.output import messages
from pilothouse.endpoints.output.messages import MessageMaker, MetadataMessageMaker, list_messages, object_message
from pilothouse.endpoints.responses import encode_protobuf
from pilothouse.machinery import protobuf
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.storage.cacher import Entry

LIST = {"resourceVersion": "17", "continue": "abc", "remainingItemCount": 3}


class Hiding(Strategy):
    hidden_annotations = frozenset({"secret"})


def scope_of(kind: str = "ConfigMap", strategy: Strategy | None = None, **others: Any) -> Any:
    gvk = GroupVersionKind("", "v1", kind)
    return SimpleNamespace(kind=gvk, api_version="v1", strategy=strategy or Strategy(), **{"render": None, **others})


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": "u", "annotations": {"secret": "s", "plain": "p"}}
    return {"metadata": metadata, "data": data} if data else {"metadata": metadata}


def entry_of(obj: dict[str, Any]) -> Entry:
    return Entry("/a", orjson.dumps(obj), 1)


def test_an_object_is_encoded_once() -> None:
    obj, scope = config_map("a", k="v"), scope_of()
    entry = entry_of(obj)
    assert MessageMaker(scope).find(entry) is None
    made = object_message(scope, entry)
    assert made == encode_protobuf({"kind": "ConfigMap", "apiVersion": "v1", **obj})
    assert MessageMaker(scope).find(entry) is not None
    assert object_message(scope, entry) == made


def test_a_rendered_version_is_what_is_encoded() -> None:
    scope = scope_of(render=lambda _: orjson.dumps(config_map("b")))
    assert b"\x01b" in MessageMaker(scope).make(entry_of(config_map("a")))


def test_large_messages_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_LONGEST_KEPT", 100)
    entry = entry_of(config_map("a", k="v" * 100))
    object_message(scope_of(), entry)
    assert entry.passing is None


@pytest.mark.parametrize("count", [0, 1, 100])
async def test_a_list_is_its_parts(count: int) -> None:
    objects = [config_map(f"c{number}", k="v" * number) for number in range(count)]
    gvk = GroupVersionKind("", "v1", "ConfigMapList")
    begin, items, end, _ = await list_messages(scope_of(), [entry_of(o) for o in objects], gvk, LIST, whole=True)
    whole = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": LIST, "items": objects}
    assert b"".join((begin, *items, end)) == encode_protobuf(whole)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("strategy", [Strategy(), Hiding()])
async def test_metadata_alone_is_the_same_however_it_is_found(strategy: Strategy, kept: bool) -> None:
    obj, scope = config_map("a", k="v"), scope_of(strategy=strategy)
    entry = entry_of(obj)
    if kept:
        object_message(scope, entry)
    gvk = GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadataList")
    begin, items, end, _ = await list_messages(scope, [entry], gvk, LIST, whole=False)
    if strategy.hidden_annotations:
        del obj["metadata"]["annotations"]["secret"]
    items_shown = [{"metadata": obj["metadata"]}]
    whole = {"kind": gvk.kind, "apiVersion": "meta.k8s.io/v1", "metadata": LIST, "items": items_shown}
    assert b"".join((begin, *items, end)) == encode_protobuf(whole)


def test_metadata_is_not_looked_for_in_messages_without_any() -> None:
    entry = entry_of({"metadata": {}})
    entry.keep_for_a_while("v1 pb", b"")
    assert MetadataMessageMaker(scope_of()).find(entry) is None
    made = MetadataMessageMaker(scope_of()).make(entry)
    assert protobuf.decode_message(types.struct("meta.v1.PartialObjectMetadata"), made) == {"metadata": {}}
