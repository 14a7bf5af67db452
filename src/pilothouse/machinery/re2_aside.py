"""Patterns whose compilation takes long, in a process of their own.

RE2 compiles in one call that keeps the interpreter's lock: ``\\pL{100}`` takes 40 ms, other short patterns 130, and
whoever may write an expression may write a thousand of them. In another process that holds up nobody here. It is
started when the first such pattern comes, and again where it has died; where there is none, the pattern is compiled
here. A thread waits for the answer without the lock; on the event loop, work is moved aside that may be.
"""

from __future__ import annotations

import atexit
import logging
import socket
import subprocess
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import re2

from pilothouse.machinery import re2_process
from pilothouse.machinery.re2_process import ANSWER, GOOD, REQUEST, compiled, find, received
from pilothouse.machinery.side_process import start_side_process
from pilothouse.machinery.workers import ABANDONED, PATIENCE, checkpoint, elsewhere

logger = logging.getLogger(__name__)
PATIENCE_SECONDS: Final = 30.0
"""For how long the process may be silent: it compiles in a tenth of a second and searches 3 MB in less than one."""
_AT_ONCE: Final = 4096
"""So many matches are asked for at a time."""
_FOLDER: Final = str(Path(re2.__file__).absolute().parents[1])
"""Where ``re2`` is, which is a package."""
_MUCH: Final = 1 << 30
"""More patience than anybody has on the loop."""


class NoProcess(Exception):
    """There is none, or it does not answer."""


class Match(NamedTuple):
    """A match, in characters or, of bytes, in bytes."""

    text: str | bytes
    first: int
    last: int

    def start(self) -> int:
        return self.first

    def end(self) -> int:
        return self.last

    def span(self) -> tuple[int, int]:
        return self.first, self.last

    def group(self) -> str | bytes:
        return self.text[self.first : self.last]


class LargePattern:
    """A pattern that another process has compiled. It is asked as one of ``re2`` is."""

    def __init__(self, pattern: str) -> None:
        """Raises ``re2.error``, ``NoProcess``."""
        self._pattern = pattern
        _process.find(pattern, b"", 0, 0)

    def search(self, text: str | bytes) -> Match | None:
        """The first match."""
        return next(self._matches(text, 1), None)

    def finditer(self, text: str | bytes) -> Iterator[Match]:
        """All matches."""
        return self._matches(text, _AT_ONCE)

    def _matches(self, text: str | bytes, at_once: int) -> Iterator[Match]:
        position = 0
        while True:
            spans = self._find(text, position, at_once)
            for at in range(0, len(spans), 2):
                yield Match(text, spans[at], spans[at + 1])
            if len(spans) < 2 * at_once or at_once == 1:
                return
            position = spans[-1] + (spans[-1] == spans[-2])
            if position > len(text):
                return

    def _find(self, text: str | bytes, start: int, most: int) -> array[int]:
        try:
            return _process.find(self._pattern, text, start, most)
        except NoProcess as error:
            logger.warning("a large pattern is searched for here: %s", error)
        return find(compiled(self._pattern), text, start, most)


class _Process:
    """The process, started when it is asked; it answers one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def find(self, pattern: str, text: str | bytes, start: int, most: int) -> array[int]:
        """Where matches are, first and last. Raises ``re2.error``, ``NoProcess``."""
        PATIENCE.spend(_MUCH)
        if ABANDONED:
            checkpoint()
        written = pattern.encode()
        data, is_text = (text.encode(), True) if isinstance(text, str) else (text, False)
        head = REQUEST.pack(len(written), len(data), is_text, start, most) + written
        with elsewhere(), self._lock:
            try:
                kind, told = self._ask(head, data)
            except (EOFError, OSError) as error:
                self._end()
                raise NoProcess(str(error) or "it has died") from error
            except BaseException:  # what is left of the answer would be taken for that to the next question
                self._end()
                raise
        if kind != GOOD:
            raise re2.error(told)
        found = array("I")
        found.frombytes(told)
        return found

    def _ask(self, head: bytes, data: bytes) -> tuple[bytes, bytes]:
        connected = self._socket or self._start()
        connected.sendall(head)
        connected.sendall(data)
        kind, size = ANSWER.unpack(received(connected, ANSWER.size))
        return kind, received(connected, size)

    def _start(self) -> socket.socket:
        self._process, here = start_side_process(re2_process.__file__, _FOLDER)
        here.settimeout(PATIENCE_SECONDS)
        self._socket = here
        atexit.register(self._end)
        return here

    def _end(self) -> None:
        atexit.unregister(self._end)
        process, connected = self._process, self._socket
        self._process = self._socket = None
        if connected is not None:
            connected.close()
        if process is not None:
            process.kill()
            process.wait()


_process: Final = _Process()
