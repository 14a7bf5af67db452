"""Lists: laid out for people object by object as they would be as a whole; the same bytes for all who ask at once."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.negotiation import Media
from pilothouse.endpoints.output import objects
from pilothouse.endpoints.output.compression import compress, is_worth_compressing
from pilothouse.endpoints.output.objects import list_response
from pilothouse.endpoints.responses import encode_object
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.workers import LONG
from pilothouse.net.messages import Response
from pilothouse.net.work_turns import PLACES
from pilothouse.storage.cacher import Entry

PRETTY = Media(pretty=True)


def scope_of() -> Any:
    return SimpleNamespace(
        list_kind="ConfigMapList",
        api_version="v1",
        list_head=b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"',
        render=None,
        keeps_type=False,
        weight=lambda entry: entry.size,
        columns=(),
        form="form",
        kind=GroupVersionKind("", "v1", "ConfigMap"),
        strategy=Strategy(),
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
async def test_of_very_many_objects_the_bytes_are_gathered_in_turns(
    renders: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(10**12)  # the time at each place is over at once
    monkeypatch.setattr(objects, "perf_counter", lambda: next(clock))
    count = 4 * PLACES * objects._LOOKED_UP_AT_ONCE + 1
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


async def plain_list(scope: Any, entries: list[Entry], revision: int) -> Response:
    return await list_response(scope, cast(Any, None), Media(), entries, revision)


def entries_of(count: int, size: int = 3000) -> list[Entry]:
    return [Entry(f"/{at}", b'{"at":%d,"x":"%s"}' % (at, b"x" * size), 1) for at in range(count)]


async def test_who_asks_for_a_list_that_is_on_its_way_gets_the_same_bytes() -> None:
    scope, entries = scope_of(), entries_of(200)
    first, second = await plain_list(scope, entries, 17), await plain_list(scope, list(entries), 18)
    assert first.parts is not None
    assert second.parts is not None
    parts = iter(first.parts)
    begun = [next(parts), next(parts)]
    assert len(objects.LISTS) == 1
    of_second = list(second.parts)
    assert of_second[1] is begun[1], "joined once"
    of_first = begun + list(parts)
    assert b"".join(of_second) == b"".join(of_first).replace(b'"17"', b'"18"')
    assert [item["at"] for item in orjson.loads(b"".join(of_first))["items"]] == list(range(200))
    assert second.length == len(b"".join(of_second))
    assert len(objects.LISTS) == 0, "nothing is kept when all have what they asked for"


async def test_a_list_is_not_shared_with_another() -> None:
    scope, entries = scope_of(), entries_of(200)
    changed = list(entries)
    changed[100] = Entry("/100", b'{"at":1000}', 2)
    answers = [await plain_list(scope, entries, 17), await plain_list(scope, changed, 17)]
    answers.append(await plain_list(scope_of(), entries, 17))
    found = [orjson.loads(b"".join(answer.parts or ())) for answer in answers]
    assert [each["items"][100]["at"] for each in found] == [100, 1000, 100]


@pytest.mark.parametrize(("count", "size"), [(64, 10_000), (200, 10), (200, 40_000)])
async def test_short_and_very_long_lists_are_not_shared(count: int, size: int) -> None:
    answer = await plain_list(scope_of(), entries_of(count, size), 17)
    assert len(objects.LISTS) == 0
    sent = answer.body if answer.parts is None else b"".join(answer.parts)
    assert len(orjson.loads(sent)["items"]) == count


TABLE_LIST = Media(transform="Table", version="v1")
METADATA_LIST = Media(transform="PartialObjectMetadataList", version="v1")


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize(("media", "items"), [(TABLE_LIST, "rows"), (METADATA_LIST, "items")])
async def test_items_of_a_long_list_are_made_as_the_client_takes_them(media: Media, items: str, gzipped: bool) -> None:
    """Rows of all pods for twenty clients at once were 1.3 GB, whether they read them or not."""
    count = objects._MADE_BEFORE + 1
    long = {"metadata": {"name": "long", "annotations": {"a": "x" * LONG}}}
    entries = [Entry(f"/{at}", b'{"metadata":{"name":"%d"}}' % at, 1) for at in range(count)]
    entries.append(Entry("/long", orjson.dumps(long), 1))
    request = SimpleNamespace(options=SimpleNamespace(text=lambda name: ""), headers={b"accept-encoding": b"gzip"})
    response = await list_response(scope_of(), cast(Any, request), media, entries, 17)
    assert response.parts is not None and response.length is None
    assert all(entry.passing is None for entry in entries[:-1]), "none is made before it is wanted"
    assert is_worth_compressing(cast(Any, request), response)
    if gzipped:
        response = await compress(response)
    assert response.parts is not None
    sent = b"".join(response.parts)
    found = orjson.loads(gzip.decompress(sent) if gzipped else sent)[items]
    names = [(item["object"] if items == "rows" else item)["metadata"]["name"] for item in found]
    assert names == [*map(str, range(count)), "long"]
    if gzipped:
        fresh = await compress(Response(200, parts=iter([b"x"] * count), length=None))
        assert len(list(fresh.parts or ())) > count, "whoever sends them cannot stop in between"
    assert all(entry.passing is not None for entry in entries)


async def test_a_list_is_compressed_as_the_client_takes_it() -> None:
    """Whole, joined and compressed, it was kept for each of those who asked for it."""
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield bytes([number]) * 100_000

    response = await compress(Response(200, parts=pieces(), length=10_000_000))
    assert response.parts is not None and response.length is None
    parts = iter(response.parts)
    sent = next(parts)
    assert taken == 1
    assert gzip.decompress(sent + b"".join(parts)) == b"".join(bytes([number]) * 100_000 for number in range(100))
