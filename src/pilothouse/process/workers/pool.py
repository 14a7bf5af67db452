"""The owner among several processes: it keeps the store, acts for all, accepts connections and looks after the others.

    start   the others begin to import ─ store open: they follow its log ─ hooks have run: theirs may ─ all are ready
    serve   connections go to all in turn; a process that dies is replaced
    stop    all fail readiness, wait, end watches and drain side by side ─ the others have ended ─ the store is closed

If the owner dies the others end too, each with a message: without the log they could answer nothing that is true.
Whoever started the server starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pilothouse.cluster.workers import ANSWER_SECONDS, Answer, Errors, Gather, Page
from pilothouse.filters.types import Handler
from pilothouse.machinery.joined_metrics import join_pages
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import Dialer
from pilothouse.net.listener import Acceptor
from pilothouse.options import ServerOptions
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process.backend import make_storage
from pilothouse.process.workers.handover import SharingSocket, Turns
from pilothouse.process.workers.pulse import Pulse
from pilothouse.process.workers.worker import Worker
from pilothouse.storage.backends.shared.server import FeedEncoding
from pilothouse.storage.stack import StorageStack

if TYPE_CHECKING:
    from pilothouse.process.serving import Serving

logger = logging.getLogger(__name__)
_ERRORS_SECONDS: Final = 1.0
_READY_SECONDS: Final = 60.0
_LAST_SECONDS: Final = 15.0


class WorkerPool:
    """The owner's companions, and the workers as its cluster sees them. Made on the event loop; starts nothing yet."""

    acts = True

    def __init__(self, options: ServerOptions, count: int) -> None:
        self.count = count
        self._options = options
        self._answers: dict[str, Answer] = {}
        self._errors: list[Errors] = []
        self._crew: list[Worker] = []
        self._turns = Turns()
        self._serving: Serving | None = None
        self._supervisor: Supervisor | None = None

    @property
    def workers(self) -> WorkerPool:
        return self

    # As the cluster sees it

    def error_of(self, check: str) -> str:
        return ""

    def show_errors(self, errors: Errors) -> None:
        self._errors.append(errors)

    def offer(self, name: str, answer: Answer) -> None:
        self._answers[name] = answer

    def ask(self, name: str, *words: Any) -> Awaitable[Any]:
        return self._answers[name](*words)

    def gather(self, name: str, answer: Answer, seconds: float = ANSWER_SECONDS) -> Gather:
        async def gathered(*words: Any) -> list[Any]:
            ready = [each for each in self._crew if each.is_ready]
            asked = (self._asked(each, name, words, seconds) for each in ready)
            own, *others = await asyncio.gather(answer(*words), *asked)
            return [own, *(other for other in others if other is not None)]

        self.offer(f"all {name}", gathered)
        return gathered

    def join(self, name: str, page: Page, joining: Callable[[], Mapping[str, str]]) -> Page:
        gathered = self.gather(name, page)

        async def joined(native: bool) -> bytes:
            return await asyncio.to_thread(join_pages, await gathered(native), joining())

        self.offer(f"joined {name}", joined)
        return joined

    async def _asked(self, worker: Worker, name: str, words: tuple[Any, ...], seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await worker.ask(f"here {name}", *words)
        except (OSError, TimeoutError) as error:
            logger.warning("worker %d does not answer about %s: %s", worker.number, name, error or "too late")
            return None

    # As the process meets it

    def make_storage(
        self, options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer
    ) -> StorageStack:
        return make_storage(options, identity, supervisor, dialer)

    def guard(self, handler: Handler, storage: StorageStack) -> Handler:
        return handler

    async def begin(self, supervisor: Supervisor) -> None:
        """Start the others: what they import takes them as long as it takes us to open the store."""
        self._supervisor = supervisor.child("workers")
        has_log = not self._options.etcd.uses_etcd
        for number in range(2, self.count + 1):
            words = pickle.dumps((self._options, self.count))
            worker = Worker(number, words, has_log, self._answers, self._take_back, self._supervisor)
            self._crew.append(worker)
            self._supervisor.run(f"worker {number}", worker.keep)

    async def store_opened(self, storage: StorageStack) -> None:
        encoding = FeedEncoding()
        if not self._options.etcd.uses_etcd:
            for worker in self._crew:
                await worker.serve_log(storage.backend, encoding)

    def open_socket(self, options: ProcessOptions, serving: Serving) -> Acceptor:
        self._serving = serving
        return SharingSocket(options.secure_serving.bind(), self._give)

    def connection_closed(self) -> None:
        """What this process has is counted when it matters."""

    async def allow_hooks(self) -> None:
        """At once: the others wait for us."""

    async def ready(self) -> None:
        """Let the others run what they need, and wait until each serves or has failed to."""
        assert self._supervisor is not None
        told = self._failing()
        for worker in self._crew:
            worker.begin(told)
        self._supervisor.run("health of the owner, for its workers", self._tell_errors)
        self._supervisor.run("pulse of the workers", Pulse(self._crew).run)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await asyncio.gather(*(worker.settled.wait() for worker in self._crew))
        except TimeoutError:
            logger.error("some workers are not ready after %g s; the others serve without them", _READY_SECONDS)

    def stop(self) -> None:
        for worker in self._crew:
            worker.stop()

    async def ended(self) -> None:
        """Wait for the others, who stop beside us and by the same rules; the last are not waited for much longer."""
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await asyncio.gather(*(worker.gone.wait() for worker in self._crew))
        except TimeoutError:
            logger.error("some workers do not end by themselves, and are killed")

    async def close(self) -> None:
        if self._supervisor is not None:
            await self._supervisor.close()

    def _give(self, connection: socket.socket) -> bool:
        """Give a connection to whose turn it is; False if it is ours."""
        workers = [worker for worker in self._crew if worker.is_ready and not worker.is_silent]
        if not workers or self._serving is None:
            return False
        turn = self._turns.next([*(worker.load for worker in workers), self._serving.load])
        return turn < len(workers) and workers[turn].give(connection)

    def _take_back(self, connection: socket.socket) -> None:
        """Find somebody else for a connection that a worker did not take."""
        if self._give(connection) or self._serving is None:
            connection.close()
        else:
            self._serving.admit(connection)

    async def _tell_errors(self) -> None:
        told = self._failing()
        while True:
            await asyncio.sleep(_ERRORS_SECONDS)
            failing = self._failing()
            if failing != told:
                told = failing
                for worker in self._crew:
                    worker.tell_errors(told)

    def _failing(self) -> dict[str, str]:
        return {name: error for errors in self._errors for name, error in errors().items()}
