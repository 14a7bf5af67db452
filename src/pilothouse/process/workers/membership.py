"""A process that serves beside the owner of the store: it follows the log, and takes connections the owner accepted.

Before a request is handled, everything that anybody was told is written has been received here (``guard``): not only
what the request reads, also the roles, definitions and policies that decide about it. That costs a look at a word in
shared memory, and waiting only while a change is on its way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pilothouse.cluster.workers import ANSWER_SECONDS, Answer, Errors, Gather, Page
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import Dialer
from pilothouse.net.listener import Acceptor
from pilothouse.net.messages import Response
from pilothouse.options import ServerOptions
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process.backend import STORE_FILE, make_shared_storage, make_storage
from pilothouse.process.process import Process
from pilothouse.process.run import live, with_loop
from pilothouse.process.workers.control import Control, News
from pilothouse.process.workers.handover import ArrivalSocket
from pilothouse.process.workers.pulse import QUESTION
from pilothouse.storage.backends.contract import Event, StorageError
from pilothouse.storage.backends.shared import SharedBackend
from pilothouse.storage.backends.sqlite import beacon_of
from pilothouse.storage.stack import StorageStack

if TYPE_CHECKING:
    from pilothouse.process.serving import Serving

logger = logging.getLogger(__name__)
_LOAD_SECONDS: Final = 0.01
_NOT_YET: Final = "the process that acts for all is not ready"


def serve_member(options: ServerOptions, count: int, descriptors: Sequence[int]) -> int:
    """Run a worker until the owner ends it, or has gone; the exit code."""
    return with_loop(_run(options, count, [socket.socket(fileno=each) for each in descriptors]))


async def _run(options: ServerOptions, count: int, sockets: list[socket.socket]) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Whole groups of processes are told to stop at once; the order in which ours do is the owner's business.
        loop.add_signal_handler(number, lambda: None)
    membership = Membership(options, count, sockets)
    code = await live(options, lambda: Process(options, companions=membership), membership.told_to_stop)
    return code or membership.exit_code


class Membership:
    """The companions of a process that is not the owner, and the workers as its cluster sees them."""

    acts = False

    def __init__(self, options: ServerOptions, count: int, sockets: list[socket.socket]) -> None:
        self.count = count
        self._options = options
        self._control_socket, self._way, *logs = sockets
        self._log_socket = logs[0] if logs else None
        self._answers: dict[str, Answer] = {QUESTION: _beat}
        self._errors: Mapping[str, str] | None = None
        self._begun = asyncio.Event()
        self._stopped = asyncio.Event()
        self._control: Control | None = None
        self._supervisor: Supervisor | None = None
        self._serving: Serving | None = None
        self._arrivals: ArrivalSocket | None = None
        self._telling = False
        self.exit_code = 0

    @property
    def workers(self) -> Membership:
        return self

    async def told_to_stop(self) -> bool:
        """Return when it is over; whether there is time to end gracefully."""
        await self._stopped.wait()
        return not self.exit_code

    # As the cluster sees it

    def error_of(self, check: str) -> str:
        return _NOT_YET if self._errors is None else self._errors.get(check, "")

    def show_errors(self, errors: Errors) -> None:
        """The owner's are what others want to know."""

    def offer(self, name: str, answer: Answer) -> None:
        self._answers[name] = answer

    def ask(self, name: str, *words: Any) -> Awaitable[Any]:
        assert self._control is not None
        return self._control.ask(name, *words)

    def gather(self, name: str, answer: Answer, seconds: float = ANSWER_SECONDS) -> Gather:
        async def gathered(*words: Any) -> list[Any]:
            found: list[Any] = await self.ask(f"all {name}", *words)
            return found

        self.offer(f"here {name}", answer)
        return gathered

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        async def joined(native: bool) -> bytes:
            found: bytes = await self.ask(f"joined {name}", native)
            return found

        self.gather(name, page)
        return joined

    # As the process meets it

    def make_storage(
        self, options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer
    ) -> StorageStack:
        if self._log_socket is None:
            return make_storage(options, identity, supervisor, dialer)
        path, log = str(Path(options.own.data_dir) / STORE_FILE), self._log_socket

        async def connect() -> socket.socket:
            return log

        backend = SharedBackend(connect, lambda: beacon_of(path), self._lose_owner)
        return make_shared_storage(options, identity, supervisor, backend, lambda: self.error_of("etcd-readiness"))

    def guard(self, handler: Handler, storage: StorageStack) -> Handler:
        return handler if self._log_socket is None else _Guard(handler, storage)

    async def begin(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor.child("worker")
        news: News = {"begin": self._begin, "errors": self._take_errors, "stop": self._stopped.set}
        self._control = Control(news, self._answers, self._lose_owner, self._supervisor)
        await self._control.start(self._control_socket)

    async def store_opened(self, storage: StorageStack) -> None:
        """The owner's is open, or we would not have got here."""

    def open_socket(self, options: ProcessOptions, serving: Serving) -> Acceptor:
        flags = options.secure_serving
        self._serving = serving
        self._arrivals = ArrivalSocket(self._way, (flags.bind_address, flags.secure_port), self._tell_soon)
        return self._arrivals

    def connection_closed(self) -> None:
        """The owner knows which connections it sent us, but not which have arrived and gone."""
        self._tell_soon()

    def _tell_soon(self) -> None:
        """Tell the owner of our load, and not of each connection."""
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_later(_LOAD_SECONDS, self._tell_load)

    async def allow_hooks(self) -> None:
        """The owner makes what a fresh cluster has; what waits for that waits here."""
        await self._begun.wait()

    async def ready(self) -> None:
        assert self._control is not None
        self._control.tell("ready")

    def stop(self) -> None:
        """The owner told us to."""

    async def ended(self) -> None:
        """Nobody waits for the store to be closed."""

    async def close(self) -> None:
        if self._control is not None:
            self._control.close()

    def _begin(self, errors: Mapping[str, str]) -> None:
        self._errors = errors
        self._begun.set()

    def _take_errors(self, errors: Mapping[str, str]) -> None:
        self._errors = errors

    def _lose_owner(self) -> None:
        """Nothing can be done without the owner, be it that it died or that it cut us off for being slow."""
        if not self._stopped.is_set():
            logger.error("the first process of this server has gone: this worker (pid %d) ends", os.getpid())
            self.exit_code = 1
            self._begun.set()
            self._stopped.set()

    def _tell_load(self) -> None:
        self._telling = False
        if self._control is not None and self._serving is not None and self._arrivals is not None:
            self._control.tell("load", self._serving.load, self._arrivals.received)


async def _beat() -> None:
    """The answer is that there is one."""


class _Guard:
    """Lets a request through once what was written before it has arrived, and those who follow have heard of it."""

    def __init__(self, handler: Handler, storage: StorageStack) -> None:
        self._handler, self._storage = handler, storage
        self._progress, self._unseen = storage.cacher.progress, storage.backend.unseen_revision
        self._loop = asyncio.get_running_loop()
        self._settling = False
        self._following = False

    def __call__(self, request: APIRequest) -> Coroutine[Any, Any, Response]:
        if not self._following:
            self._follow()
        unseen = self._unseen()
        if self._settling or unseen is None or unseen > self._progress.revision:
            return self._wait(request)
        return self._handler(request)

    async def _wait(self, request: APIRequest) -> Response:
        try:
            revision = await self._storage.backend.current_revision()
            await self._progress.reach(revision)
        except StorageError as error:
            logger.warning("a request is handled without knowing what was written last: %s", error)
        if self._settling:
            await asyncio.sleep(0)
        return await self._handler(request)

    def _follow(self) -> None:
        """Behind the caches, so that whom they woke is ahead of those who wait here."""
        self._following = True
        self._storage.backend.follow(self)

    def receive(self, events: Sequence[Event], revision: int) -> None:
        """Changes were handed to the caches; informers hear of them in the next turn of the loop."""
        if not self._settling:
            self._settling = True
            self._loop.call_soon(self._settle)

    def fail(self, error: StorageError) -> None:
        """Nothing more will come; requests will find out by themselves."""
        self._following = False

    def _settle(self) -> None:
        self._settling = False
