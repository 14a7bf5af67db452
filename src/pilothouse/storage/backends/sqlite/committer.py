"""A process beside a busy writer that commits its short batches.

A thread needs the interpreter's lock to take up a batch and to tell of its end, and wakes up for it, and so does the
event loop: for one client that is half the time of a create. A process needs no lock of ours, and both sides look for
what the other says without sleeping. It is started when many batches come, and the thread goes on with everything else.

Only one of the two ever has something to write. A batch that the process did not write, for whatever reason, is given
to the thread; one that it may have written before it died is doubtful, and is looked for in the log first.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pilothouse.machinery.side_process import start_side_process
from pilothouse.net.busy_polling import SERVER_SECONDS, BusyPolling
from pilothouse.net.processors import processors
from pilothouse.storage.backends.sqlite import commit_process
from pilothouse.storage.backends.sqlite.writing import Statement

logger = logging.getLogger(__name__)
MOST_BYTES: Final = 64 * 1024
"""Of the keys and values of a batch: longer ones take a while anyway, and should not be copied twice."""
MANY_BATCHES: Final = 64
"""So many in a second are worth a process."""
PATIENCE_SECONDS: Final = 10.0
"""For how long the process may be silent when it should say something."""
_IS_POSSIBLE: Final = sys.platform == "linux" and bool(sys.executable)
_READY: Final = b"ready"
_WRITTEN: Final = b"written"


class Committer:
    """See the module's docstring. Everything but `start` and `wait` is for the loop's thread."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop, answered: Callable[[bool | None], None]) -> None:
        """``answered`` is told whether what was sent is written; None where nobody can say any more."""
        self._path, self._loop, self._answered = path, loop, answered
        self._polling = BusyPolling(loop, SERVER_SECONDS)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._is_wanted = _IS_POSSIBLE and processors() > 1
        self._is_asked = False
        self._counted = 0
        self._since = 0.0
        self.is_ready = False
        """Whether something can be sent."""

    def is_worth_it(self) -> bool:
        """Count a batch; whether there are so many that the process should be started."""
        if not self._is_wanted:
            return False
        self._counted += 1
        if self._counted < MANY_BATCHES:
            return False
        now = self._loop.time()
        soon, self._since, self._counted = now - self._since < 1, now, 0
        self._is_wanted = not soon
        return soon

    def start(self) -> socket.socket | None:
        """Start the process; to be connected on the loop. None where that cannot be, for want of descriptors, say."""
        self.wait()
        try:
            database = f"{Path(os.path.abspath(self._path)).as_uri()}?mode=rw"
            self._process, here = start_side_process(commit_process.__file__, database, socket.SOCK_SEQPACKET)
        except OSError as error:
            logger.debug("there is no process to commit with: %s", error)
            return None
        here.setblocking(False)
        return here

    def connect(self, connected: socket.socket | None) -> None:
        """Listen to the process."""
        self._socket = connected
        if connected is not None:
            self._loop.add_reader(connected.fileno(), self._receive)

    def send(self, statement: Statement) -> bool:
        """Have it executed; False when that cannot be."""
        assert self._socket is not None
        try:
            self._socket.send(marshal.dumps(statement))
        except ValueError:  # there is something in it that cannot be sent
            return False
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                self._give_up()
            return False
        self._is_asked = True
        self._polling.expect()
        return True

    def close(self) -> None:
        """Tell the process to end, when it has done what it was asked for."""
        self.is_ready = False
        connected, self._socket = self._socket, None
        if connected is not None:
            self._loop.remove_reader(connected.fileno())
            connected.close()

    def wait(self) -> None:
        """Wait for the end of the process, for a thread that can; nothing is written by it any more then."""
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()

    def _receive(self) -> None:
        assert self._socket is not None
        try:
            message = self._socket.recv(64)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            message = b""
        if message == _READY:
            self.is_ready = True
            return
        asked, self._is_asked = self._is_asked, False
        if not message:
            self._give_up()
        if asked:
            self._polling.came()
            self._answered(message == _WRITTEN if message else None)

    def _give_up(self) -> None:
        """The process has gone; there may be another, unless this one could not even begin."""
        self._is_wanted = self.is_ready
        self.close()
        self.kill()
