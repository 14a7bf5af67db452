"""One process of the pool, as the owner knows it: started, spoken to, fed with the log, given connections, replaced."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from pilothouse.machinery.supervision import Supervisor
from pilothouse.process.workers.control import Answers, Control
from pilothouse.process.workers.handover import LATE_SECONDS, Handover
from pilothouse.process.workers.pulse import QUESTION
from pilothouse.storage.backends.contract import Backend
from pilothouse.storage.backends.shared.server import FeedEncoding, LogServer

logger = logging.getLogger(__name__)
_MODULE: Final = "pilothouse.cli.worker"
NO_STORE: Final = -1


class Worker:
    """The place of a worker; one process after the other may fill it."""

    def __init__(
        self,
        number: int,
        words: bytes,
        has_log: bool,
        answers: Answers,
        take_back: Callable[[socket.socket], None],
        supervisor: Supervisor,
    ) -> None:
        """``words`` is what a process is told at its start; ``has_log`` whether it follows a log of ours.

        ``take_back`` gets the connections that it was given and did not take.
        """
        self.number = number
        self._words, self._has_log, self._answers, self._supervisor = words, has_log, answers, supervisor
        self._take_back = take_back
        self.is_ready = False
        self.is_silent = False
        """Whether it does not take what it is given."""
        self.pid = 0
        self.settled = asyncio.Event()
        """Set when the process is ready, or has failed to become so."""
        self.gone = asyncio.Event()
        """Set when the process has ended for good."""
        self._stopping = False
        self._control: Control | None = None
        self._handover: Handover | None = None
        self._watched = False
        self._log_socket: socket.socket | None = None
        self._log: LogServer | None = None
        self._serve_log: Callable[[], LogServer] | None = None
        self._begun: dict[str, str] | None = None
        self._reported = 0

    # What the pool does with it

    @property
    def load(self) -> int:
        """Connections it has, and those on their way to it."""
        return self._reported + (0 if self._handover is None else self._handover.under_way)

    def give(self, connection: socket.socket) -> bool:
        """Hand it a connection; False if it does not take it."""
        if self._handover is None or self.is_silent or not self._handover.send(connection):
            return False
        if not self._watched:
            self._watched = True
            self._look_later()
        return True

    async def serve_log(self, backend: Backend, encoding: FeedEncoding) -> None:
        """Let it follow the log, now and whenever it is replaced."""
        self._serve_log = lambda: LogServer(backend, encoding)
        await self._start_log()

    def begin(self, errors: dict[str, str]) -> None:
        """Tell it, and those who take its place, that the cluster is there."""
        self._begun = errors
        if self._control is not None:
            self._control.tell("begin", errors)

    def tell_errors(self, errors: dict[str, str]) -> None:
        """Tell it which health checks fail in the owner."""
        if self._begun is not None:
            self._begun = errors
            if self._control is not None:
                self._control.tell("errors", errors)

    def stop(self) -> None:
        """Tell it to stop gracefully; nobody takes its place."""
        self._stopping = True
        if self._control is not None:
            self._control.tell("stop")
        if not self.pid:
            self.gone.set()

    async def ask(self, name: str, *words: Any) -> Any:
        """Ask it something. Raises OSError."""
        if self._control is None:
            raise OSError("the worker is not there")
        return await self._control.ask(name, *words)

    def kill(self) -> None:
        """End its process at once; another takes its place."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    # The life of its process

    async def keep(self) -> None:
        """Start a process and stay until it has ended: work to be started again by a supervisor."""
        if self._stopping:
            await asyncio.Event().wait()
        try:
            process = await self._start()
        except OSError as error:
            self._part()
            self.settled.set()
            logger.error("worker %d cannot be started: %s", self.number, error)
            return
        try:
            code = await process.wait()
        finally:
            self._part()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            self.settled.set()
            self.gone.set()
        if self._stopping:
            await asyncio.Event().wait()
        logger.error("worker %d (pid %d) %s; another takes its place", self.number, process.pid, _ending(code))

    async def _start(self) -> asyncio.subprocess.Process:
        control, their_control = socket.socketpair()
        self._handover = Handover(asyncio.get_running_loop().time)
        theirs = [their_control]
        if self._has_log:
            self._log_socket, their_log = socket.socketpair()
            theirs.append(their_log)
        descriptors = [their_control.fileno(), self._handover.theirs.fileno(), *(end.fileno() for end in theirs[1:])]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", _MODULE, *map(str, descriptors),
                stdin=asyncio.subprocess.PIPE,
                pass_fds=descriptors,
                env={**os.environ, "PYTHONPATH": _import_path()},
                start_new_session=True,  # an interrupt of the terminal is for the owner, who stops the others in order
            )  # fmt: skip
        except OSError:
            control.close()
            raise
        finally:
            for end in theirs:
                end.close()
        try:
            await self._greet(process, control)
        except BaseException:
            process.kill()
            raise
        return process

    async def _greet(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        """Tell a new process all that it needs to know."""
        self.pid = process.pid
        self.gone.clear()
        self._reported = 0
        self._control = Control(
            {"ready": self._ready, "load": self._take_load}, self._answers, lambda: None, self._supervisor
        )
        await self._control.start(control)
        if self._begun is not None:
            self._control.tell("begin", self._begun)
        await self._start_log()
        assert process.stdin is not None
        process.stdin.write(self._words)
        process.stdin.close()

    async def _start_log(self) -> None:
        if self._serve_log is not None and self._log_socket is not None:
            sock, self._log_socket = self._log_socket, None
            self._log = self._serve_log()
            await self._log.start(sock)

    def _part(self) -> None:
        """The process has ended, or is to end now."""
        self.is_ready, self.is_silent, self.pid = False, False, 0
        if self._control is not None:
            self._control.close()
        if self._log is not None:
            self._log.close()
        if self._log_socket is not None:
            self._log_socket.close()
        handover, self._handover = self._handover, None
        if handover is not None:
            self._return(handover)
            handover.close()
        self._control = self._log_socket = self._log = None

    def _ready(self) -> None:
        self.is_ready = True
        self.settled.set()
        logger.info("worker %d (pid %d) serves", self.number, self.pid)

    def _take_load(self, connections: int, received: int) -> None:
        self._reported = connections
        if self._handover is not None:
            self._handover.note_received(received)

    # Connections that it does not take

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(LATE_SECONDS, self._look)

    def _look(self) -> None:
        """See whether it takes what it was given."""
        handover = self._handover
        self._watched = handover is not None and handover.under_way > 0 and not handover.is_late
        if self._watched:
            self._look_later()
        elif handover is not None and handover.is_late:
            logger.warning("worker %d does not take connections: others get them", self.number)
            self.is_silent = True
            self._return(handover)
            self._supervisor.spawn(f"return of worker {self.number}", self._wait_for_sign())

    def _return(self, handover: Handover) -> None:
        for connection in handover.take_back():
            self._take_back(connection)

    async def _wait_for_sign(self) -> None:
        with suppress(OSError):
            await self.ask(QUESTION)
            self.is_silent = False
            logger.info("worker %d takes connections again", self.number)


def _import_path() -> str:
    """Where this process finds its modules, for one that is to find the same; never its folder by chance."""
    return os.pathsep.join(each or os.getcwd() for each in sys.path)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
