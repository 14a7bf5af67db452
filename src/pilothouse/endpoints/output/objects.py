"""One object or many, in the form the client negotiated.

The usual case costs no decoding: an answer is the endpoint's head plus cached bytes, a list is cached bytes joined.
Other versions of an object are made once and kept with the entry; other forms are decoded on demand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any, Final

import orjson

from pilothouse.endpoints.negotiation import JSON, METADATA, METADATA_LIST, PROTOBUF, TABLE, Media
from pilothouse.endpoints.output.lists_in_flight import ListsInFlight
from pilothouse.endpoints.output.rows import MetadataMaker, RowMaker, make_all, make_as_taken, partial_metadata
from pilothouse.endpoints.output.table import table_of, table_parts
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import encode_object
from pilothouse.endpoints.scope import Endpoint, ShownScope
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.workers import LONG, aside, checkpoint, weighed
from pilothouse.net.messages import Response
from pilothouse.net.work_turns import SECONDS, request_turns
from pilothouse.storage.cacher import Entry

LISTS: Final = ListsInFlight()
_CHUNK: Final = 64
_MADE_BEFORE: Final = 500
"""So many items, a page of kubectl's, are made before their length is told."""
_LONG_ITEM: Final = 64 * 1024
_JOINED_LIMIT: Final = 256 * 1024
_SHARED_LIMIT: Final = 4 << 20
"""Parts of longer lists are to be let go of as they are sent, and not kept for others."""
_PIECE: Final = 2 << 20
_NO_ITEMS: Final = b"[]\n}"
_LOOKED_UP_AT_ONCE: Final = 1_000
"""Of so many entries the bytes are looked up without asking for the time: each is somewhere else in memory."""
_RENDERED_AT_ONCE: Final = 16  # which may have to be made
_ON_THE_LOOP: Final = 32  # objects that are decoded and encoded at once


def served_data(scope: ShownScope, entry: Entry) -> bytes:
    """The entry's bytes in the endpoint's version, as a list item shows them."""
    return entry.data if scope.render is None else scope.render(entry)


def served_bytes(scope: ShownScope, entry: Entry) -> bytes:
    """The whole object with kind and apiVersion."""
    data = served_data(scope, entry)
    return scope.head + data[1:] if scope.head else data


def served_object(scope: ShownScope, entry: Entry) -> dict[str, Any]:
    """The object, decoded."""
    obj: dict[str, Any] = large_json.loads(served_bytes(scope, entry))
    return obj


async def entry_response(
    scope: ShownScope, request: APIRequest, media: Media, entry: Entry, status: int = 200
) -> Response:
    """Answer with one object. Large ones are brought into other forms aside."""
    if media.format == JSON and not media.transform and not media.pretty and scope.render is None:
        return Response(status, served_bytes(scope, entry) + b"\n")
    return await weighed(scope.weight(entry), _make_response, scope, request, media, entry, status)


def _make_response(scope: ShownScope, request: APIRequest, media: Media, entry: Entry, status: int) -> Response:
    if media.format == JSON and not media.transform and not media.pretty:
        return Response(status, served_bytes(scope, entry) + b"\n")
    if not media.transform and media.format == PROTOBUF:
        from pilothouse.endpoints.output.messages import object_message

        return Response(status, object_message(scope, entry), media.content_type)
    if not media.transform:
        return Response(status, encode_object(media, served_object(scope, entry)), media.content_type)
    if media.transform == METADATA:
        obj = metadata_of(scope, entry, media)
    elif media.transform == TABLE:
        obj = table_of(scope, request, media, [entry], "")
    else:
        if scope.keeps_type:  # what has no Go type of its own is not looked at before it is taken apart
            raise errors.generic("content is not a list")
        raise _wrong_transform(scope, media.transform, "not a list", "")
    return Response(status, encode_object(media, obj), media.content_type)


def _wrong_transform(scope: Endpoint, asked: str, what: str, suffix: str) -> errors.StatusError:
    untyped = isinstance(scope, ShownScope) and scope.keeps_type
    kind = f"*{scope.expected.internal_package}.{'Unstructured' if untyped else scope.kind.kind}{suffix}"
    return errors.StatusError(
        406, "NotAcceptable", f"you requested {asked}, but the requested object is {what} ({kind})"
    )


def metadata_of(scope: ShownScope, entry: Entry, media: Media) -> dict[str, Any]:
    """A PartialObjectMetadata."""
    return _partial(media, partial_metadata(scope, large_json.loads(served_data(scope, entry))["metadata"]))


def computed_object(endpoint: Endpoint, media: Media, obj: dict[str, Any]) -> dict[str, Any]:
    """An object that no store has, as it was asked for."""
    if not media.transform:
        return obj
    if media.transform == METADATA:
        return _partial(media, obj["metadata"])
    raise _wrong_transform(endpoint, media.transform, "not a list", "")


def _partial(media: Media, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": METADATA, "apiVersion": f"meta.k8s.io/{media.version}", "metadata": metadata}


def list_metadata(
    revision: int, token: str = "", remaining: int | None = None, *, explicit: bool = False
) -> dict[str, Any]:
    """A list's own metadata; ``explicit`` shows even an empty token, as lists of custom resources do."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if token or explicit:
        metadata["continue"] = token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return metadata


async def list_response(
    scope: ShownScope,
    request: APIRequest,
    media: Media,
    entries: Sequence[Entry],
    revision: int,
    token: str = "",
    remaining: int | None = None,
) -> Response:
    """Answer with a list. Others get their turns while a long one is made."""
    as_bytes = media.format == JSON and not media.pretty
    if as_bytes and not media.transform:
        return await _plain_list(scope, entries, revision, token, remaining)
    metadata = list_metadata(revision, token, remaining)
    if media.transform == METADATA:
        raise _wrong_transform(scope, METADATA, "a list", "List")
    if media.transform == TABLE:
        if as_bytes:
            return await _made_list(entries, *table_parts(scope, request, media, entries, metadata))
        size = sum(map(scope.weight, entries))
        table = await weighed(size, table_of, scope, request, media, entries, str(revision), metadata)
        return Response(200, await weighed(size, encode_object, media, table), media.content_type)
    if media.transform == METADATA_LIST and as_bytes and entries:
        return await _made_list(entries, *_metadata_parts(scope, media, metadata))
    if media.format == PROTOBUF:
        return await _protobuf_list(scope, media, entries, metadata)
    if not media.transform:
        metadata = list_metadata(revision, token, remaining, explicit=scope.keeps_type)
    indented = media.format == JSON and not media.transform and len(entries) > _ON_THE_LOOP
    encode = partial(_indented_pieces if indented else _encode_list, scope, media, entries, metadata)
    on_the_loop = len(entries) <= _ON_THE_LOOP and sum(map(scope.weight, entries)) < LONG
    pieces = encode() if on_the_loop else await aside(encode)
    if len(pieces) == 1:
        return Response(200, pieces[0], media.content_type)
    return Response(200, b"", media.content_type, parts=_taken(pieces), length=sum(map(len, pieces)))


def _metadata_parts(scope: ShownScope, media: Media, metadata: dict[str, Any]) -> tuple[bytes, MetadataMaker, bytes]:
    """A PartialObjectMetadataList in JSON: what comes before its items, what makes them, and what follows."""
    maker = MetadataMaker(scope, media.version, partial(served_data, scope), "meta")
    head = {"kind": METADATA_LIST, "apiVersion": f"meta.k8s.io/{media.version}", "metadata": metadata}
    return orjson.dumps(head)[:-1] + b',"items":[', maker, b"]}\n"


async def _made_list(
    entries: Sequence[Entry], head: bytes, maker: RowMaker | MetadataMaker | None, tail: bytes
) -> Response:
    """A list whose items are made of entries: before it is answered, or, if they are many, as the client takes them.

    So neither twenty clients that ask for all rows, nor a slow one, have all of them in memory.
    """
    if maker is None or len(entries) <= _MADE_BEFORE:
        return _joined(head, [] if maker is None else await make_all(entries, maker.find, maker.make), tail)
    items = await make_as_taken(entries, maker.find, maker.make)
    return Response(200, b"", parts=_pieces_of(head, items, tail), length=None)


def _pieces_of(head: bytes, items: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    yield head
    separator = b""
    for item in items:
        yield separator
        yield from (item,) if len(item) <= _LONG_ITEM else _cut(item)
        separator = b","
    yield tail


async def _protobuf_list(
    scope: ShownScope, media: Media, entries: Sequence[Entry], metadata: dict[str, Any]
) -> Response:
    from pilothouse.endpoints.output.messages import list_messages

    whole = not media.transform
    kind = scope.kind if whole else GroupVersionKind("meta.k8s.io", media.version, "")
    kind = kind._replace(kind=scope.list_kind if whole else METADATA_LIST)
    head, items, tail, size = await list_messages(scope, entries, kind, metadata, whole=whole)
    return _joined(head, items, tail, b"", media.content_type, size)


def _indented_pieces(
    scope: ShownScope, media: Media, entries: Sequence[Entry], metadata: dict[str, Any]
) -> deque[bytes]:
    """A list in JSON that is laid out for people, object by object: all of them decoded would take ten times as much.

    Pieces are so large that each has memory of its own, which goes back to the system when it is sent.
    """
    empty = {"kind": scope.list_kind, "apiVersion": scope.api_version, "metadata": metadata, "items": []}
    head = encode_object(media, empty).removesuffix(_NO_ITEMS) + b"["
    pieces: deque[bytes] = deque()
    piece, size = [head], 0
    for number, entry in enumerate(entries):
        checkpoint()
        item = encode_object(media, large_json.loads(served_data(scope, entry))).replace(b"\n", b"\n    ")
        piece += (b",\n    " if number else b"\n    ", item)
        size += len(item)
        if size >= _PIECE:
            pieces.append(b"".join(piece))
            piece, size = [], 0
    pieces.append(b"".join([*piece, b"\n  ]\n}"]))
    return pieces


def _taken(pieces: deque[bytes]) -> Iterator[bytes]:
    """All pieces, each let go of as soon as the next is wanted."""
    while pieces:
        yield pieces.popleft()


def _encode_list(scope: ShownScope, media: Media, entries: Sequence[Entry], metadata: dict[str, Any]) -> deque[bytes]:
    """A list in YAML, a short one in JSON that is laid out for people, or one of metadata, in one piece."""
    if media.transform == METADATA_LIST:
        kind, version = METADATA_LIST, f"meta.k8s.io/{media.version}"
        items = [metadata_of(scope, entry, media) for entry in entries] or None
    else:
        kind, version = scope.list_kind, scope.api_version
        items = [large_json.loads(served_data(scope, entry)) for entry in entries]
    return deque([encode_object(media, {"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})])


async def _plain_list(
    scope: ShownScope, entries: Sequence[Entry], revision: int, token: str, remaining: int | None
) -> Response:
    head = b'%b%d"' % (scope.list_head, revision)
    if token or scope.keeps_type:
        head += b',"continue":"%b"' % token.encode()
    if remaining is not None:
        head += b',"remainingItemCount":%d' % remaining
    head += b'},"items":['
    tail = b"]}\n"
    shared = LISTS.find(scope, entries) if len(entries) > _CHUNK else None
    if shared is None:
        items, size = await _shown(scope, entries)
        length = size + len(items) - 1
        if len(entries) <= _CHUNK or not _JOINED_LIMIT < length <= _SHARED_LIMIT:
            return _joined(head, items, tail, size=size)
        shared = LISTS.add(scope, entries, length, _pieces(b"", items, b"", b","))
    return Response(200, b"", parts=chain((head,), shared, (tail,)), length=len(head) + shared.length + len(tail))


async def _shown(scope: ShownScope, entries: Sequence[Entry]) -> tuple[list[bytes], int]:
    """The bytes of all entries, and how many they are."""
    items: list[bytes] = []
    size, turns, until = 0, request_turns(), perf_counter() + SECONDS
    step = _LOOKED_UP_AT_ONCE if scope.render is None else _RENDERED_AT_ONCE
    for start in range(0, len(entries), step):
        if perf_counter() >= until:
            until = await turns.begin()
        some = entries if len(entries) <= step else entries[start : start + step]
        found = [entry.data for entry in some] if scope.render is None else list(map(scope.render, some))
        items += found
        size += sum(map(len, found))
    return items, size


def _joined(
    head: bytes,
    items: list[bytes],
    tail: bytes,
    separator: bytes = b",",
    content_type: bytes = b"application/json",
    size: int | None = None,
) -> Response:
    size = sum(map(len, items)) if size is None else size
    length = len(head) + size + len(separator) * max(0, len(items) - 1) + len(tail)
    if length <= _JOINED_LIMIT:
        return Response(200, head + separator.join(items) + tail, content_type)
    return Response(200, b"", content_type, parts=_pieces(head, items, tail, separator), length=length)


def _cut(item: bytes) -> Iterator[bytes]:
    return (item[at : at + _LONG_ITEM] for at in range(0, len(item), _LONG_ITEM))


def _take_batch(items: list[bytes]) -> list[bytes]:
    """The next items, which are last in the list, up to one that is long."""
    batch = items[: -_CHUNK - 1 : -1]
    count, size = 0, 0
    for item in batch:
        if len(item) > _LONG_ITEM or size > _LONG_ITEM:
            break
        count += 1
        size += len(item)
    del items[-count:]
    return batch[:count]


def _pieces(head: bytes, items: list[bytes], tail: bytes, separator: bytes) -> Iterator[bytes]:
    """The list's bytes, some dozens of items at a time, so that a large answer is never in memory twice.

    What was sent is let go of: whoever still holds the answer does not hold what it was made of. A long item is cut:
    one of a megabyte would otherwise be encrypted, and a dozen of them copied, in one turn of the loop.
    """
    yield head
    items.reverse()
    is_first = True
    while items:
        if len(items[-1]) > _LONG_ITEM:
            if not is_first:
                yield separator
            yield from _cut(items.pop())
        else:
            batch = _take_batch(items)
            if not is_first:
                batch.insert(0, b"")  # so that the separator before them is not a piece of its own, to be joined again
            yield separator.join(batch)
        is_first = False
    yield tail
