"""The audit log: one line an event, in a file or on standard output.

In the blocking modes the line is handed to the system before the request goes on, which is what these modes promise.
A thread does that for all who wait: it is a write into the page cache, mostly, but a disk may hang, and nobody may read
what is at the other end of a pipe. Then requests that are written down wait, and nobody else does.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import orjson

from pilothouse.audit.events import Record
from pilothouse.audit.sinks import Lose, lose_silently
from pilothouse.machinery.go_quote import quote
from pilothouse.net.eager import Prompt
from pilothouse.net.settling import Settling

logger = logging.getLogger(__name__)
_AT_ONCE: Final = 64 * 1024
"""Lines of so many bytes are one write, if they wait at the same time."""
Waiting = dict[Prompt[bool], Sequence[Record]]
"""Records, by what their requests wait for."""
Part = list[tuple[Prompt[bool], Sequence[Record]]]


class Writer(Protocol):
    """Takes bytes."""

    def write(self, data: bytes) -> None:
        """Append. Raises ``OSError``."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class StandardOutput:
    """For ``--audit-log-path=-``."""

    def write(self, data: bytes) -> None:
        """Print."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Nothing to close."""


class LogSink:
    """Writes records as lines, in their order, in a thread of its own. Nobody's records are kept who has left."""

    def __init__(self, writer: Writer, format: str = "json", *, lose: Lose = lose_silently) -> None:
        self._writer, self._legacy, self._lose = writer, format == "legacy", lose
        self._changed = threading.Condition()
        self._waiting: Waiting = {}
        self._settling: Settling[bool] = Settling()
        self._thread: threading.Thread | None = None
        self._ended = asyncio.Event()
        self._closing = False

    async def process(self, records: Sequence[Record]) -> bool:
        """Write them; False if the file does not take them."""
        self._ensure_thread()
        written: Prompt[bool] = Prompt(loop=asyncio.get_running_loop())
        with self._changed:
            self._waiting[written] = records
            self._changed.notify()
        try:
            done = await written
        except asyncio.CancelledError:
            with self._changed:
                self._waiting.pop(written, None)
            raise
        if not done:
            self._lose("log", len(records))
        return done

    async def close(self) -> None:
        """Write what is left, and close the file."""
        self._ensure_thread()
        with self._changed:
            self._closing = True
            self._changed.notify()
        await self._ended.wait()

    def _ensure_thread(self) -> None:
        if self._thread is None:
            loop = asyncio.get_running_loop()
            # A hanging disk must not keep the process from ending.
            self._thread = threading.Thread(target=self._work, args=(loop,), name="audit log", daemon=True)
            self._thread.start()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            while waiting := self._take():
                for part in _divide(waiting):
                    done = self._write([record for _, records in part for record in records])
                    loop.call_soon_threadsafe(self._settling.add, [(written, done) for written, _ in part])
            self._writer.close()
            loop.call_soon_threadsafe(self._ended.set)

    def _take(self) -> Waiting:
        """All that waits to be written; nothing when nothing will come any more."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            waiting, self._waiting = self._waiting, {}
            return waiting

    def _write(self, records: Sequence[Record]) -> bool:
        try:
            self._writer.write(b"".join(map(self._line, records)))
        except Exception as error:
            logger.error("%d audit events cannot be written: %s", len(records), error)
            return False
        return True

    def _line(self, record: Record) -> bytes:
        return _legacy_line(record) if self._legacy else record.line


def _divide(waiting: Waiting) -> Iterator[Part]:
    """What is to be written, in parts for one write each."""
    part: Part = []
    size = 0
    for written, records in waiting.items():
        more = sum(record.size for record in records)
        if part and size + more > _AT_ONCE:
            yield part
            part, size = [], 0
        part.append((written, records))
        size += more
    yield part


def _legacy_line(record: Record) -> bytes:
    event = orjson.loads(record.body)
    user, acting = event.get("user") or {}, event.get("impersonatedUser")
    groups = _listed(user.get("groups")) if user.get("username") and user.get("groups") else "<none>"
    acting_groups = _listed(acting["groups"]) if acting and acting.get("groups") else "<lookup>"
    code = (event.get("responseStatus") or {}).get("code")
    fields = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": (event.get("sourceIPs") or ["<unknown>"])[0],
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": groups,
        "as": acting.get("username", "") if acting else "<self>",
        "asgroups": acting_groups,
        "user-agent": event.get("userAgent", ""),
        "namespace": (event.get("objectRef") or {}).get("namespace") or "<none>",
        "uri": event["requestURI"],
    }
    shown = " ".join(f"{key}={quote(value)}" for key, value in fields.items())
    response = "<deferred>" if code is None else str(code)
    return f'{event["requestReceivedTimestamp"]} AUDIT: {shown} response="{response}"\n'.encode()


def _listed(groups: Any) -> str:
    return ",".join(quote(group) for group in groups or ())
