"""One object or many, in the form the client negotiated.

The usual case costs no decoding: an answer is the endpoint's head plus cached bytes, a list is cached bytes joined.
Other versions of an object are made once and kept with the entry; other forms are decoded on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from pilothouse.endpoints.negotiation import JSON, METADATA, METADATA_LIST, TABLE, Media
from pilothouse.endpoints.output.table import partial_metadata, table_of
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import encode_object
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors
from pilothouse.net.messages import Response
from pilothouse.storage.cacher import Entry

_CHUNK: Final = 64
_JOINED_LIMIT: Final = 256 * 1024


def served_data(scope: ResourceScope, entry: Entry) -> bytes:
    """The entry's bytes in the endpoint's version, as a list item shows them."""
    return entry.data if scope.render is None else scope.render(entry)


def served_bytes(scope: ResourceScope, entry: Entry) -> bytes:
    """The whole object with kind and apiVersion."""
    data = served_data(scope, entry)
    return scope.head + data[1:] if scope.head else data


def served_object(scope: ResourceScope, entry: Entry) -> dict[str, Any]:
    """The object, decoded."""
    obj: dict[str, Any] = orjson.loads(served_bytes(scope, entry))
    return obj


def entry_response(
    scope: ResourceScope, request: APIRequest, media: Media, entry: Entry, status: int = 200
) -> Response:
    """Answer with one object."""
    if media.format == JSON and not media.transform and not media.pretty:
        return Response(status, served_bytes(scope, entry) + b"\n")
    if not media.transform:
        return Response(status, encode_object(media, served_object(scope, entry)), media.content_type)
    if media.transform == METADATA:
        obj = metadata_of(scope, entry, media)
    elif media.transform == TABLE:
        obj = table_of(scope, request, media, [entry], "")
    else:
        raise _wrong_transform(scope, media.transform, "not a list", "")
    return Response(status, encode_object(media, obj), media.content_type)


def _wrong_transform(scope: ResourceScope, asked: str, what: str, suffix: str) -> errors.StatusError:
    kind = f"*{scope.expected.internal_package}.{scope.kind.kind}{suffix}"
    return errors.StatusError(
        406, "NotAcceptable", f"you requested {asked}, but the requested object is {what} ({kind})"
    )


def metadata_of(scope: ResourceScope, entry: Entry, media: Media) -> dict[str, Any]:
    """A PartialObjectMetadata."""
    metadata = partial_metadata(scope, orjson.loads(served_data(scope, entry))["metadata"])
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


def list_response(
    scope: ResourceScope,
    request: APIRequest,
    media: Media,
    entries: Sequence[Entry],
    revision: int,
    token: str = "",
    remaining: int | None = None,
) -> Response:
    """Answer with a list."""
    if media.format == JSON and not media.transform and not media.pretty:
        return _plain_list(scope, entries, revision, token, remaining)
    metadata = list_metadata(revision, token, remaining)
    if media.transform == TABLE:
        obj = table_of(scope, request, media, entries, str(revision), metadata)
    elif media.transform == METADATA:
        raise _wrong_transform(scope, METADATA, "a list", "List")
    elif media.transform == METADATA_LIST:
        items = [metadata_of(scope, entry, media) for entry in entries] or None
        version = f"meta.k8s.io/{media.version}"
        obj = {"kind": METADATA_LIST, "apiVersion": version, "metadata": metadata, "items": items}
    else:
        items = [orjson.loads(served_data(scope, entry)) for entry in entries]
        metadata = list_metadata(revision, token, remaining, explicit=scope.keeps_type)
        obj = {"kind": scope.list_kind, "apiVersion": scope.api_version, "metadata": metadata, "items": items}
    return Response(200, encode_object(media, obj), media.content_type)


def _plain_list(
    scope: ResourceScope, entries: Sequence[Entry], revision: int, token: str, remaining: int | None
) -> Response:
    head = b'%b%d"' % (scope.list_head, revision)
    if token or scope.keeps_type:
        head += b',"continue":"%b"' % token.encode()
    if remaining is not None:
        head += b',"remainingItemCount":%d' % remaining
    head += b'},"items":['
    tail = b"]}\n"
    items = [entry.data for entry in entries] if scope.render is None else list(map(scope.render, entries))
    length = len(head) + sum(map(len, items)) + max(0, len(items) - 1) + len(tail)
    if length <= _JOINED_LIMIT:
        return Response(200, head + b",".join(items) + tail)
    return Response(200, parts=_pieces(head, items, tail), length=length)


def _pieces(head: bytes, items: list[bytes], tail: bytes) -> Iterator[bytes]:
    """The list's bytes, some dozens of items at a time, so that a large answer is never in memory twice."""
    yield head
    for start in range(0, len(items), _CHUNK):
        if start:
            yield b","
        yield b",".join(items[start : start + _CHUNK])
    yield tail
