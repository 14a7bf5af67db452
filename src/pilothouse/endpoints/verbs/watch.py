"""Watches: a stream of changes, one JSON object a line, or length-prefixed frames in protobuf, or WebSocket messages.

Here a watch is read, opened and answered; `endpoints/watch` makes bytes of its events and delivers them. A watch ends
when its time is up, the client goes, the server stops, or it fell too far behind.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from pilothouse.endpoints.list_options import WatchOptions, list_options
from pilothouse.endpoints.negotiation import JSON, METADATA_LIST, PROTOBUF, TABLE, YAML, Media, negotiate
from pilothouse.endpoints.output.table import include_object
from pilothouse.endpoints.request import APIRequest, Seat
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.watch.delivery import FrameWriter, deliver
from pilothouse.endpoints.watch.encoding import encoder_for, error_encoder
from pilothouse.endpoints.watch.late_selection import LateSelection
from pilothouse.endpoints.watch.metrics import initial_events
from pilothouse.machinery import errors
from pilothouse.machinery.fields import Selector as FieldSelector
from pilothouse.net.framing import Framing
from pilothouse.net.messages import BodyWriter, Response
from pilothouse.registry.store.listing import ListOptions, predicate_of
from pilothouse.registry.store.versions import parse_version
from pilothouse.storage.backends.contract import Compacted, Unavailable
from pilothouse.storage.cacher import Watcher, trait_of

_STREAM_TYPES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_SECOND: Final = 1_000_000_000


async def watch(scope: ResourceScope, request: APIRequest) -> Response:
    """Open the watch first, so that a refusal is still an ordinary answer, then stream."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options, extra = await list_options(scope, request)
    if media.transform == TABLE:
        include_object(request)
    seconds = watch_seconds(request, extra)
    try:
        late = _late_selection(scope, options)
        watcher = await _open_in_time(scope, request, options, extra, seconds)
    except errors.StatusError as error:
        if error.reason not in ("Expired", "Timeout", "InternalError") or request.asks_for_websocket:
            raise
        if media.format == YAML:
            raise errors.not_acceptable(_STREAM_TYPES) from None
        return _told_in_stream(media, error)
    if media.format == YAML:
        watcher.stop()
        raise errors.not_acceptable(_STREAM_TYPES)
    request.on_disconnect(watcher.stop)  # the client may go before the stream begins
    marked = extra.marks_start
    seat = _keep_seat(request) if watcher.has_long_start else None

    async def stream(writer: FrameWriter, framing: Framing) -> None:
        if media.transform == METADATA_LIST or seconds < 0:
            watcher.stop()  # no event is a list, none comes in time: kube-apiserver opens the stream and says nothing
            return
        encode, encode_error = encoder_for(scope, request, media, framing), error_encoder(media, framing)
        turns = request.connection.turns
        prepare = scope.prepare if late is None else late.prepare
        await deliver(
            watcher,
            encode,
            encode_error,
            writer,
            turns,
            seconds,
            marked=marked,
            prepare=prepare,
            seat=seat,
            selection=late,
            starting=initial_events(request.info) if marked else None,
        )

    if request.asks_for_websocket:
        from pilothouse.endpoints.watch.websocket import message_framing, switch_to_websocket

        messages = message_framing(media.format)
        return switch_to_websocket(request, watcher, lambda socket: stream(socket, messages))
    return Response(200, content_type=stream_content_type(media), stream=lambda writer: stream(writer, writer.framing))


def _keep_seat(request: APIRequest) -> Seat | None:
    """Hold the request's seat until the many events that a watch begins with are delivered."""
    seat, request.seat = request.seat, None
    if seat is not None:
        request.on_disconnect(seat.release)
    return seat


def _late_selection(scope: ResourceScope, options: ListOptions) -> LateSelection | None:
    """Fields of objects that others convert are known only then: what they select is taken out of the options."""
    if options.fields is None or not scope.store.converts:
        return None
    matches = predicate_of(None, options.fields, scope.store.field_value)
    assert matches is not None
    known = FieldSelector(each for each in options.fields.requirements if each.field.startswith("metadata."))
    options.fields = None if known.empty else known
    return LateSelection(matches, scope.store)


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

    kube-apiserver counts nanoseconds in 64 bits: what is too long for them becomes negative or nothing.
    """
    if extra.timeout_seconds:
        nanoseconds = (extra.timeout_seconds * _SECOND + (1 << 63)) % (1 << 64) - (1 << 63)
        if nanoseconds:
            return nanoseconds / _SECOND
    return request.watch_seconds * (1 + random.random())


async def _open_in_time(
    scope: ResourceScope, request: APIRequest, options: ListOptions, extra: WatchOptions, seconds: float
) -> Watcher:
    """Waiting for the store is part of the watch's time. As in kube-apiserver, where that ends the watch has failed."""
    request.deadline = asyncio.get_running_loop().time() + seconds if seconds > 0 else None
    try:
        return await open_watch(scope, request, options, extra)
    except asyncio.CancelledError:
        if not request.timed_out:
            raise
        raise errors.StatusError(500, "InternalError", "context deadline exceeded") from None
    except Unavailable as error:
        raise errors.StatusError(500, "InternalError", str(error)) from None
    finally:
        request.deadline = None


async def open_watch(scope: ResourceScope, request: APIRequest, options: ListOptions, extra: WatchOptions) -> Watcher:
    """Subscribe from where the client asks: now, a version (which may be yet to come), or the present state first.

    Version 0 is any state: it waits for nothing, so that it can be had while the store gives no answer.
    """
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
    if store.converts:
        await store.wait_initialized()
    if options.version in ("", "0") or extra.initial_events:
        if version:
            await store.wait_for(options.version)
        elif not options.version or store.reads_newest:
            await cache.wait_fresh()
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
            trait=trait_of(options.labels, options.fields),
            bookmarks=extra.bookmarks,
            initial=initial,
            client=request.user.name or "nobody",
        )
    except Compacted as gone:
        raise errors.expired(f"too old resource version: {gone.requested} ({gone.compacted})") from None


def _parse(version: str) -> int:
    try:
        return parse_version(version)
    except ValueError as error:
        raise errors.generic(f'resourceVersion: Invalid value: "{version}": {error}') from None
