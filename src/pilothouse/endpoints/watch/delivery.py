"""Events of a watch on their way to its connection, at the pace of the client.

While a client reads, live events are encoded and handed to its connection in turns with all others (`net/turns.py`),
without waking the task that serves the watch. That task writes what is left: the initial events, what was missed, what
a slow client could not be given at once, and whatever takes long to encode or needs a conversion by others first; in
turns with all other long requests (`net/work_turns.py`). A client that does not read costs no more than a piece of
output; when its watch has ended, it has a moment to take what is left, and is then cut off.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final, Protocol

from pilothouse.endpoints.request import Seat
from pilothouse.endpoints.scope import Prepare
from pilothouse.endpoints.watch.encoding import EncodeError, EventEncoder
from pilothouse.endpoints.watch.late_selection import LateSelection
from pilothouse.machinery import errors
from pilothouse.machinery.observations import Observations
from pilothouse.net.messages import ClientDisconnected
from pilothouse.net.turns import Outgoing, WriteTurns
from pilothouse.net.work_turns import request_turns
from pilothouse.net.writing import WriteGate
from pilothouse.storage.cacher import BOOKMARK, Watcher, WatchEvent

PIECE: Final = 60 * 1024
PATIENCE: Final = 5.0


class FrameWriter(Protocol):
    """A connection that takes whole frames: a streamed body or a WebSocket."""

    def open_gate(self) -> WriteGate:
        """The way to the transport, for frames that are written directly."""

    def write_frames(self, frames: bytes, /) -> None:
        """Write without waiting."""

    async def drain(self, patience: float | None = None, /) -> bool:
        """Wait while the client is slow. False: slow for longer than ``patience``."""


async def deliver(
    watcher: Watcher,
    encode: EventEncoder,
    encode_error: EncodeError,
    writer: FrameWriter,
    turns: WriteTurns,
    seconds: float,
    *,
    marked: bool = True,
    prepare: Prepare | None = None,
    seat: Seat | None = None,
    selection: LateSelection | None = None,
    starting: Observations | None = None,
) -> None:
    """Write events until the watch ends; the end of the initial ones is ``marked`` for those who asked for them.

    ``seat`` is held while many initial ones are left to write. A ``selection`` is made among events that are prepared.
    ``starting`` observes how long the initial ones took.
    """
    began = perf_counter()
    timer = asyncio.get_running_loop().call_later(seconds, watcher.end)
    if prepare is None:
        watcher.listen(Delivery(watcher, encode, writer.open_gate(), turns))
    try:
        while batch := await watcher.next_batch():
            if prepare is not None:
                try:
                    await prepare([event.entry for event in batch if event.type != BOOKMARK])
                    if selection is not None:
                        batch = await selection.select(batch)
                except errors.StatusError as error:
                    writer.write_frames(encode_error(error.status))
                    return
            if not marked and any(event.initial_end for event in batch):
                batch = [event for event in batch if not event.initial_end]
            ends_start = starting is not None and any(event.initial_end for event in batch)
            await _write_events(watcher, batch, encode, writer)
            if ends_start and starting is not None:
                starting.observe(perf_counter() - began)
                starting = None
            if seat is not None and not watcher.has_long_start:
                seat.release()
                seat = None
    finally:
        if seat is not None:
            seat.release()
        timer.cancel()
        watcher.stop()


class Delivery:
    """Takes live events to a client that reads; what is more, or for one that does not, is given back."""

    __slots__ = ("_encode", "_form", "_gate", "_observe", "_turns", "_watcher")

    def __init__(self, watcher: Watcher, encode: EventEncoder, gate: WriteGate, turns: WriteTurns) -> None:
        self._watcher, self._encode, self._form, self._gate = watcher, encode, encode.form, gate
        self._turns, self._observe = turns, encode.sent.observe

    def ready(self) -> None:
        """Called by the watcher: something waits."""
        self._turns.add(self)

    def outgoing(self) -> Outgoing | None:
        """A piece of output."""
        events = self._watcher.take()
        if not events:
            return None
        transport = self._gate.way_out()
        if transport is None or self._encode.is_long(events[0]):
            self._watcher.give_back(events)
            return None
        try:
            if len(events) == 1:
                data = events[0].memo.get(self._form) or self._encode(events[0])
                self._observe(float(len(data)))
                return transport, data
            return transport, self._join(events)
        except Exception:
            self._watcher.give_back(events)  # the consumer will meet the failure itself
            return None

    def _join(self, events: list[WatchEvent]) -> bytes:
        pieces, size = [], 0
        for event in events:
            if self._encode.is_long(event):
                break
            piece = self._encode(event)
            pieces.append(piece)
            size += len(piece)
            self._observe(float(len(piece)))
            if size >= PIECE:
                break
        if len(pieces) < len(events):
            self._watcher.give_back(events[len(pieces) :])
        return b"".join(pieces)


async def _write_events(watcher: Watcher, batch: list[WatchEvent], encode: EventEncoder, writer: FrameWriter) -> None:
    """Write a batch, of which nothing is left then: what is made of an event is kept with it."""
    pieces, size = [], 0
    turns, until = request_turns(), 0.0
    batch.reverse()
    while batch:
        if perf_counter() >= until:  # a client that reads as fast as this writes would keep all others waiting
            until = await turns.begin()
        event = batch.pop()  # and kept while its bytes may wait: whoever comes to it meanwhile shares them
        piece = await encode.encoded(event)
        encode.sent.observe(float(len(piece)))
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE:
            writer.write_frames(b"".join(pieces))
            pieces, size = [], 0
            await _let_client_read(watcher, writer)
    if pieces:
        writer.write_frames(b"".join(pieces))
    await _let_client_read(watcher, writer)


async def _let_client_read(watcher: Watcher, writer: FrameWriter) -> None:
    """Wait while the client is slow, but not for ever once the watch has ended."""
    ended = False
    while not await writer.drain(PATIENCE):
        if ended:
            raise ClientDisconnected("client does not read")
        ended = watcher.ended
