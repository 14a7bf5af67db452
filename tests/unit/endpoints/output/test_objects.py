"""A long list that is laid out for people object by object is what laying it out as a whole gives."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from pilothouse.endpoints.negotiation import Media
from pilothouse.endpoints.output import objects
from pilothouse.endpoints.output.objects import list_response
from pilothouse.endpoints.responses import encode_object
from pilothouse.storage.cacher import Entry

PRETTY = Media(pretty=True)


def scope_of() -> Any:
    return SimpleNamespace(
        list_kind="ConfigMapList", api_version="v1", render=None, keeps_type=False, weight=lambda entry: entry.size
    )


def config_maps(count: int) -> list[dict[str, Any]]:
    texts = ["plain", "two\nlines", "a<b>&c", "", '}\n  ]\n"']
    return [{"metadata": {"name": f"m-{at}"}, "data": {"a": texts[at % 5]}, "empty": {}} for at in range(count)]


@pytest.mark.parametrize("count", [0, 1, 32, 33, 200])
@pytest.mark.parametrize("piece", [64, 2 << 20])
async def test_an_indented_list(count: int, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_PIECE", piece)
    items = config_maps(count)
    entries = [Entry(f"/{at}", orjson.dumps(item), 1) for at, item in enumerate(items)]
    response = await list_response(scope_of(), cast(Any, None), PRETTY, entries, 17, "next", 5)
    metadata = {"resourceVersion": "17", "continue": "next", "remainingItemCount": 5}
    whole = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}
    sent = response.body if response.parts is None else b"".join(response.parts)
    assert sent == encode_object(PRETTY, whole)
    assert response.parts is None or response.length == len(sent)


@pytest.mark.parametrize("renders", [False, True])
async def test_of_very_many_objects_the_bytes_are_gathered_in_turns(renders: bool) -> None:
    count = 3 * objects._A_TURN + 1
    entries = [Entry(f"/{at}", b'{"n":%d}' % at, 1) for at in range(count)]
    scope = scope_of()
    scope.list_head = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"'
    scope.render = (lambda entry: entry.data) if renders else None
    making = asyncio.ensure_future(list_response(scope, cast(Any, None), Media(), entries, 17))
    turns = 0
    while not making.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 3
    response = making.result()
    sent = response.body if response.parts is None else b"".join(response.parts)
    assert response.parts is None or response.length == len(sent)
    assert orjson.loads(sent)["items"] == [{"n": at} for at in range(count)]


def test_parts_of_a_list_are_let_go_of_as_they_are_sent() -> None:
    items = [b"%d" % number for number in range(200)]
    wanted = b"[" + b",".join(items) + b"]"
    pieces = objects._pieces(b"[", items, b"]", b",")
    first = next(pieces) + next(pieces)
    assert len(items) == 136
    assert first + b"".join(pieces) == wanted
    assert items == []
