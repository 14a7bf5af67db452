"""How the events of a watch become bytes.

An event is encoded and framed once for all watches that want it in the same form; the bytes are kept with the event.
Tables are the exception: the first one of a watch has column definitions, the others have none. What a long object is
brought into is made aside, but for plain JSON, which is at hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import orjson

from pilothouse.endpoints.negotiation import JSON, METADATA, PROTOBUF, TABLE, Media
from pilothouse.endpoints.output.objects import metadata_of, served_bytes
from pilothouse.endpoints.output.rows import partial_metadata
from pilothouse.endpoints.output.table import table_of
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import encode_protobuf
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.watch.metrics import sent_events
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.workers import LONG, aside
from pilothouse.net.framing import Framing
from pilothouse.storage.cacher import BOOKMARK, Entry, WatchEvent

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
Encode = Callable[[WatchEvent], bytes]
EncodeError = Callable[[dict[str, Any]], bytes]


class EventEncoder:
    """Makes the bytes of events, or finds them with the event, under ``form`` if there is one."""

    __slots__ = ("_copies", "_frame", "_make", "form", "sent")

    def __init__(
        self, make: Encode, framing: Framing, sent: Observations, form: str = "", *, copies: bool = False
    ) -> None:
        """``copies``: to make them is no more than to copy what is there."""
        self._make, self._frame, self.form, self._copies = make, framing.frame, form, copies
        self.sent = sent
        """The sizes of events that went out."""

    def __call__(self, event: WatchEvent) -> bytes:
        form = self.form
        if not form:
            return self._frame(self._make(event))
        data: bytes | None = event.memo.get(form)
        if data is None:
            data = event.memo[form] = self._frame(self._make(event))
        return data

    def is_long(self, event: WatchEvent) -> bool:
        """Whether what is to be made of an event takes long; then others get their turn only in `encoded`."""
        return not self._copies and event.entry.size >= LONG and (not self.form or self.form not in event.memo)

    async def encoded(self, event: WatchEvent) -> bytes:
        """The bytes, made aside if that takes long."""
        return await aside(self, event, weight=event.entry.size) if self.is_long(event) else self(event)


def encoder_for(scope: ResourceScope, request: APIRequest, media: Media, framing: Framing) -> EventEncoder:
    """The encoder of a watch."""
    sent = sent_events(request.info)
    if media.transform == TABLE:
        return EventEncoder(_other_event(_object_maker(scope, request, media), media), framing, sent)
    # One string for all, so that looking it up needs no comparison.
    form = sys.intern(f"{scope.form} {media.format} {media.transform} {media.version} {framing.name}")
    if media.format == JSON and not media.transform:
        return EventEncoder(partial(_plain_event, scope), framing, sent, form, copies=scope.render is None)
    if media.format == PROTOBUF and not media.transform:
        return EventEncoder(partial(_protobuf_object_event, scope), framing, sent, form)
    return EventEncoder(_other_event(_object_maker(scope, request, media), media), framing, sent, form)


def error_encoder(media: Media, framing: Framing) -> EncodeError:
    """How a failure in the middle of this watch becomes bytes."""
    encode, frame = _ENCODINGS[media.format], framing.frame
    return lambda status: frame(encode("ERROR", status))


def _plain_event(scope: ResourceScope, event: WatchEvent) -> bytes:
    body = bookmark_bytes(scope, event) if event.type == BOOKMARK else served_bytes(scope, event.entry)
    return b'{"type":"%b","object":%b}\n' % (event.type.encode(), body)


def _protobuf_object_event(scope: ResourceScope, event: WatchEvent) -> bytes:
    from pilothouse.endpoints.output.messages import object_message
    from pilothouse.machinery import protobuf

    if event.type == BOOKMARK:
        return _protobuf_event(event.type, bookmark_object(scope, event))
    return protobuf.encode_watch_event(event.type, object_message(scope, event.entry))


def _other_event(make: Callable[[WatchEvent], dict[str, Any]], media: Media) -> Encode:
    encode = _ENCODINGS[media.format]
    return lambda event: encode(event.type, make(event))


def bookmark_bytes(scope: ResourceScope, event: WatchEvent) -> bytes:
    """An otherwise empty object that carries the version the watch has reached."""
    return orjson.dumps(bookmark_object(scope, event))


def bookmark_object(scope: ResourceScope, event: WatchEvent) -> dict[str, Any]:
    empty = scope.empty
    metadata = {**empty["metadata"], "resourceVersion": str(event.revision)}
    if event.initial_end:
        metadata["annotations"] = {**metadata.get("annotations", {}), INITIAL_EVENTS_END: "true"}
    return {"kind": scope.kind.kind, "apiVersion": scope.api_version, **empty, "metadata": metadata}


def _bookmark_entry(scope: ResourceScope, event: WatchEvent) -> Entry:
    """A bookmark as a row of a table needs it."""
    return Entry("", orjson.dumps(bookmark_object(scope, event)), event.revision)


def _object_maker(scope: ResourceScope, request: APIRequest, media: Media) -> Callable[[WatchEvent], dict[str, Any]]:
    """What the event's object looks like as a Table or without all but its metadata."""
    version = f"meta.k8s.io/{media.version}"
    first = True

    def make(event: WatchEvent) -> dict[str, Any]:
        nonlocal first
        if media.transform == TABLE:
            entry = _bookmark_entry(scope, event) if event.type == BOOKMARK else event.entry
            table = table_of(scope, request, media, [entry], str(event.revision))
            if not first:
                table["columnDefinitions"] = None
            first = False
            return table
        if event.type == BOOKMARK:
            metadata = partial_metadata(scope, bookmark_object(scope, event)["metadata"])
            return {"kind": METADATA, "apiVersion": version, "metadata": metadata}
        return metadata_of(scope, event.entry, media)

    return make


def _json_event(type: str, obj: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": type, "object": obj}) + b"\n"


def _protobuf_event(type: str, obj: dict[str, Any]) -> bytes:
    from pilothouse.machinery import protobuf

    return protobuf.encode_watch_event(type, encode_protobuf(obj))


_ENCODINGS: Final[dict[str, Callable[[str, dict[str, Any]], bytes]]] = {
    JSON: _json_event,
    PROTOBUF: _protobuf_event,
}
