"""Watches: a stream of changes, one JSON object a line, or length-prefixed frames in protobuf, or WebSocket messages.

An event is encoded and framed once for all watchers that want it in the same form; the bytes are kept with the event
and handed to the connections as they are, without waking anybody, as long as the clients read. A watch ends when its
time is up, the client goes, the server stops, or it fell too far behind. A client that does not read costs no more than
a piece of output; when its watch has ended, it has a moment to take what is left, and is then cut off.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from pilothouse.endpoints.list_options import WatchOptions, read_list_options
from pilothouse.endpoints.negotiation import JSON, METADATA_LIST, PROTOBUF, TABLE, YAML, Media, negotiate
from pilothouse.endpoints.output.table import include_object
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Prepare, ResourceScope
from pilothouse.endpoints.verbs.watch_encoding import EncodeError, EventEncoder, Framing, encoder_for, error_encoder
from pilothouse.machinery import errors
from pilothouse.net.messages import BodyWriter, ClientDisconnected, Response
from pilothouse.net.writing import WriteGate
from pilothouse.registry.store.listing import ListOptions, predicate_of
from pilothouse.registry.store.versions import parse_version
from pilothouse.storage.backends.contract import Compacted
from pilothouse.storage.cacher import BOOKMARK, Outgoing, Watcher, WatchEvent

if TYPE_CHECKING:
    from pilothouse.net.websocket import WebSocket

_STREAM_TYPES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
PIECE: Final = 60 * 1024
PATIENCE: Final = 5.0
_SECOND: Final = 1_000_000_000


async def watch(scope: ResourceScope, request: APIRequest) -> Response:
    """Open the watch first, so that a refusal is still an ordinary answer, then stream."""
    media = negotiate(request, scope.formats, transforms=True)
    options, extra = read_list_options(scope, request)
    if media.transform == TABLE:
        include_object(request)
    try:
        watcher = await open_watch(scope, request, options, extra)
    except errors.StatusError as error:
        if error.reason not in ("Expired", "Timeout") or request.asks_for_websocket:
            raise
        if media.format == YAML:
            raise errors.not_acceptable(_STREAM_TYPES) from None
        return _told_in_stream(media, error)
    if media.format == YAML:
        watcher.stop()
        raise errors.not_acceptable(_STREAM_TYPES)
    request.on_disconnect(watcher.stop)  # the client may go before the stream begins
    seconds, marked = watch_seconds(request, extra), extra.marks_start

    async def stream(writer: BodyWriter | WebSocket, framing: Framing) -> None:
        if media.transform == METADATA_LIST or seconds < 0:
            watcher.stop()  # no event is a list, none comes in time: the original opens the stream and says nothing
            return
        encode, encode_error = encoder_for(scope, request, media, framing), error_encoder(media, framing)
        await run_watch(watcher, encode, encode_error, writer, seconds, marked=marked, prepare=scope.prepare)

    if request.asks_for_websocket:
        from pilothouse.endpoints.websocket_watch import message_framing, switch_to_websocket

        messages = message_framing(media.format)
        return switch_to_websocket(request, watcher, lambda socket: stream(socket, messages))
    return Response(200, content_type=stream_content_type(media), stream=lambda writer: stream(writer, writer.framing))


def _told_in_stream(media: Media, error: errors.StatusError) -> Response:
    """What is too old or not there yet is told in the stream, so that clients list again instead of giving up."""

    async def stream(writer: BodyWriter) -> None:
        writer.write_frames(error_encoder(media, writer.framing)(error.status))

    return Response(200, content_type=stream_content_type(media), stream=stream)


def stream_content_type(media: Media) -> bytes:
    """The content type of a stream of events."""
    return media.content_type + (b";stream=watch" if media.format == PROTOBUF else b"")


def watch_seconds(request: APIRequest, extra: WatchOptions) -> float:
    """How long the watch lasts: as asked for, or half an hour to an hour, so that clients do not all return at once.

    The original counts nanoseconds in 64 bits: what is too long for them becomes negative or nothing.
    """
    if extra.timeout_seconds:
        nanoseconds = (extra.timeout_seconds * _SECOND + (1 << 63)) % (1 << 64) - (1 << 63)
        if nanoseconds:
            return nanoseconds / _SECOND
    return request.watch_seconds * (1 + random.random())


async def open_watch(scope: ResourceScope, request: APIRequest, options: ListOptions, extra: WatchOptions) -> Watcher:
    """Subscribe from where the client asks: now, a version (which may be yet to come), or the present state first."""
    store, info = scope.store, request.info
    cache = store.cache
    version = _parse(options.version)
    prefix = store.prefix
    if info.namespace and scope.resource.namespaced:
        prefix += info.namespace + "/"
    if info.name and len(info.parts) > 1:
        prefix = store.key(info.namespace, info.name)
        selected = options.fields.exact_value("metadata.name") if options.fields is not None else None
        if selected is not None and selected != info.name:
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    if not cache.ready:
        await cache.wait_ready()
    if options.version in ("", "0") or extra.initial_events:
        await (store.wait_for(options.version) if version else cache.wait_fresh())
        initial = extra.initial_events is not False
        after = None
    else:
        initial, after = False, version
        if version < store.oldest_watch:
            raise errors.expired(f"too old resource version: {version} ({store.oldest_watch})")
    try:
        return await cache.watch(
            prefix,
            after,
            predicate_of(options.labels, options.fields),
            bookmarks=extra.bookmarks,
            initial=initial,
            served=True,
        )
    except Compacted as gone:
        raise errors.expired(f"too old resource version: {gone.requested} ({gone.compacted})") from None


def _parse(version: str) -> int:
    try:
        return parse_version(version)
    except ValueError as error:
        raise errors.generic(f'resourceVersion: Invalid value: "{version}": {error}') from None


async def run_watch(
    watcher: Watcher,
    encode: EventEncoder,
    encode_error: EncodeError,
    writer: BodyWriter | WebSocket,
    seconds: float,
    *,
    marked: bool = True,
    prepare: Prepare | None = None,
) -> None:
    """Write events until the watch ends; the end of the initial ones is ``marked`` for those who asked for them."""
    timer = asyncio.get_running_loop().call_later(seconds, watcher.end)
    if prepare is None:
        watcher.pass_to(_Sender(encode, writer.open_gate()))
    try:
        while True:
            batch = await watcher.next_batch()
            if not batch:
                return
            if prepare is not None:
                try:
                    await prepare([event.entry for event in batch if event.type != BOOKMARK])
                except errors.StatusError as error:
                    writer.write_frames(encode_error(error.status))
                    return
            if not marked and any(event.initial_end for event in batch):
                batch = [event for event in batch if not event.initial_end]
            await _write_events(watcher, batch, encode, writer)
    finally:
        timer.cancel()
        watcher.stop()


async def _write_events(
    watcher: Watcher, batch: list[WatchEvent], encode: EventEncoder, writer: BodyWriter | WebSocket
) -> None:
    pieces, size = [], 0
    for event in batch:
        piece = encode(event)
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE:
            writer.write_frames(b"".join(pieces))
            pieces, size = [], 0
            await _let_client_read(watcher, writer)
    if pieces:
        writer.write_frames(b"".join(pieces))
    await _let_client_read(watcher, writer)


class _Sender:
    """Sends a piece of output to a client that reads; what is more, or to one that does not, waits its turn."""

    __slots__ = ("_encode", "_form", "_gate")

    def __init__(self, encode: EventEncoder, gate: WriteGate) -> None:
        self._encode, self._form, self._gate = encode, encode.form, gate

    def take(self, events: list[WatchEvent]) -> Outgoing | None:
        transport = self._gate.way_out()
        if transport is None:
            return None
        if len(events) == 1:
            data = events[0].memo.get(self._form) or self._encode(events[0])
            events.clear()
            return transport, data
        pieces, size = [], 0
        for event in events:
            piece = self._encode(event)
            pieces.append(piece)
            size += len(piece)
            if size >= PIECE:
                break
        del events[: len(pieces)]
        return transport, b"".join(pieces)


async def _let_client_read(watcher: Watcher, writer: BodyWriter | WebSocket) -> None:
    """Wait while the client is slow, but not for ever once the watch has ended."""
    ended = False
    while not await writer.drain(PATIENCE):
        if ended:
            raise ClientDisconnected("client does not read")
        ended = watcher.ended
