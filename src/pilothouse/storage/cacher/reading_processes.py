"""Processes that read stored values while a large resource is loaded: reading is most of the work.

They are forked from the server when the first page has been read, so that they know the resource's codec and all that
it has prepared, and live until the last page. Each gets pages over a socket and sends back what entries are made of.
They close every other descriptor at once, run no event loop, and end when the server does. A page that a process does
not bring back is read by the server itself.
"""

from __future__ import annotations

import asyncio
import gc
import marshal
import os
import signal
import socket
import sys
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from pilothouse.storage.backends.contract import KeyValue
from pilothouse.storage.cacher.entries import NOTHING, Entry, EntryCodec, share_labels

WORTH_IT: Final = 10_000
"""With fewer objects to come, forking costs more than it brings."""
_MOST: Final = 4
_LENGTH: Final = 8
_PATIENCE: Final = 60.0
"""Seconds for a page, which takes a fraction of one: a process that was forked at a bad moment may hang."""
_TURN: Final = 50
"""So many the server reads itself before others get their turn."""


def processors() -> int:
    """How many processes may read: none where a fork is not safe, or there is one core only."""
    if sys.platform != "linux":
        return 0
    cores = len(os.sched_getaffinity(0))
    return min(cores, _MOST) if cores > 1 else 0


class ReadingProcesses:
    """Some processes, to be closed. Pages come back in the order in which they were given."""

    def __init__(self, codec: EntryCodec, count: int, read_here: Callable[[KeyValue], Entry | None]) -> None:
        """``read_here`` reads what no process could, and tells of what cannot be read at all."""
        self._read_here = read_here
        self._children = [_Child(codec) for _ in range(count)]
        self._idle = deque(self._children)
        self._freed = asyncio.Semaphore(count)
        self._pages: deque[asyncio.Task[list[Entry]]] = deque()

    async def give(self, items: Sequence[KeyValue]) -> list[Entry]:
        """Hand out a page. The entries of earlier ones come back when enough are under way."""
        self._pages.append(asyncio.ensure_future(self._read(items)))
        return await self._pages.popleft() if len(self._pages) > 2 * len(self._children) else []

    async def rest(self) -> list[Entry]:
        """The entries of all pages that are still under way."""
        return [entry for page in await asyncio.gather(*self._pages) for entry in page]

    async def close(self) -> None:
        """End the processes."""
        for page in self._pages:
            page.cancel()
        await asyncio.gather(*self._pages, return_exceptions=True)
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        for child in self._children:
            child.end()

    async def _read(self, items: Sequence[KeyValue]) -> list[Entry]:
        async with self._freed:
            child = self._idle.popleft()
            try:
                found = await asyncio.to_thread(child.read, items)
            except (OSError, EOFError, ValueError, TypeError):
                found = [None] * len(items)
            finally:
                self._idle.append(child)
        if None not in found:
            return [entry for entry in found if entry is not None]
        entries = []
        for number, (entry, item) in enumerate(zip(found, items, strict=True)):
            made = self._read_here(item) if entry is None else entry
            if made is not None:
                entries.append(made)
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        return entries


class _Child:
    """One process, as the server sees it."""

    def __init__(self, codec: EntryCodec) -> None:
        self._socket, other = socket.socketpair()
        with warnings.catch_warnings():
            # Later versions of Python warn of threads; what runs here takes no lock that one of them may hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if not self._pid:
            _serve(other, codec)
        other.close()
        self._socket.settimeout(_PATIENCE)

    def read(self, items: Sequence[KeyValue]) -> list[Entry | None]:
        """Have a page read; None for what cannot be. Blocks. Raises OSError, EOFError, and does so from then on."""
        try:
            _send(self._socket, [(item.key, item.value, item.revision) for item in items])
            return [None if row is None else _entry_of(*row) for row in _receive(self._socket)]
        except OSError:
            self._kill()  # what it brings too late must not be taken for the next page
            raise

    def end(self) -> None:
        """End the process, which has nothing to lose."""
        self._kill()
        self._socket.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _kill(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        os.kill(self._pid, signal.SIGKILL)


def _entry_of(
    key: str, data: bytes, revision: int, namespace: str, name: str, labels: dict[str, str], fields: dict[str, str]
) -> Entry:
    return Entry(key, data, revision, namespace, name, share_labels(labels), fields or NOTHING)


def _serve(connection: socket.socket, codec: EntryCodec) -> None:
    """The life of a process. It never returns: what it was forked from is not its own."""
    try:
        kept = connection.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 20 else 1 << 20)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        gc.disable()
        while True:
            _send(connection, [_row(codec, *item) for item in _receive(connection)])
    finally:
        os._exit(0)


def _row(codec: EntryCodec, key: str, value: bytes, revision: int) -> tuple[Any, ...] | None:
    try:
        entry = codec.entry(key, value, revision)
    except Exception:
        return None  # the server tries again, and tells of it
    return key, entry.data, revision, entry.namespace, entry.name, dict(entry.labels), dict(entry.fields)


def _send(connection: socket.socket, content: list[Any]) -> None:
    data = marshal.dumps(content)
    connection.sendall(len(data).to_bytes(_LENGTH, "big") + data)


def _receive(connection: socket.socket) -> list[Any]:
    length = int.from_bytes(_read_exactly(connection, _LENGTH), "big")
    content: list[Any] = marshal.loads(_read_exactly(connection, length))  # noqa: S302 - of a process of ours
    return content


def _read_exactly(connection: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view, done = memoryview(data), 0
    while done < length:
        count = connection.recv_into(view[done:])
        if not count:
            raise EOFError
        done += count
    view.release()
    return data
