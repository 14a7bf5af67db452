"""An API server inside the process of a test: the real one, on a port of its own, with a store of its own.

    with InProcessServer() as server:              in a thread of its own, for code that blocks
    async with InProcessServer() as server:        on the loop of the test

Nothing is left out: filters, authentication, RBAC, admission and the SQLite store work as in ``pilothouse serve``. It
is ready when the block begins, in a fraction of a second. When the block ends, requests are drained, watches end, and
the data is removed unless a folder was named. Any number of servers can run side by side, and one can be entered again
after it was left. ``living`` adds what ``pilothouse serve`` runs beside the API: controllers, a scheduler and a
simulated node, on a ``clock`` that a test may hold.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.credentials.pki import Pki
from pilothouse.machinery.objects import Object
from pilothouse.options import ServerOptions, claimed_folder, complete, parse, provision, server_url, validate
from pilothouse.process.hosting import HostingProcess
from pilothouse.process.process import Process
from pilothouse.testing.calling import Answer, Caller
from pilothouse.testing.definitions import establish

_HOST = "127.0.0.1"


class InProcessServer:
    """A server for the time of a ``with`` or ``async with`` block. ``flags`` are those of ``pilothouse serve``.

    What they leave open is chosen: a free port of 127.0.0.1 and a temporary folder.
    """

    def __init__(
        self, *flags: str, data_dir: str | Path | None = None, living: bool = False, clock: Clock = SYSTEM
    ) -> None:
        self._flags = flags
        self._given = data_dir
        self._living, self._clock = living, clock
        self._options: ServerOptions | None = None
        self._process: HostingProcess[Any] | None = None
        self._context: ssl.SSLContext | None = None
        self._thread: threading.Thread | None = None
        self._entered = False
        self._stop: Future[None] = Future()
        self._closing = ExitStack()

    # How to reach it

    @property
    def options(self) -> ServerOptions:
        """The completed flags."""
        assert self._options is not None, "the server has not been started"
        return self._options

    @property
    def url(self) -> str:
        """Where the server is reached, such as ``https://127.0.0.1:34567``."""
        return server_url(self.options)

    @property
    def port(self) -> int:
        return self.options.secure_serving.secure_port

    @property
    def data_dir(self) -> Path:
        """The folder with the store, the certificates and the kubeconfig."""
        return Path(self.options.own.data_dir)

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator, with all certificates in it."""
        return Path(self.options.derived.admin_kubeconfig or self.data_dir / "admin.kubeconfig")

    @property
    def pki(self) -> Pki:
        """The certificates: ``pki.ca_cert`` to trust, ``pki.admin_cert`` and ``pki.admin_key`` to show."""
        return Pki(self.data_dir / "pki")

    @property
    def process(self) -> Process:
        """The running server's parts, for tests that look inside."""
        assert isinstance(self._process, Process), "the server is not running"
        return self._process

    def ssl_context(self) -> ssl.SSLContext:
        """Trusts this server and authenticates as its administrator."""
        context = ssl.create_default_context(cafile=str(self.pki.ca_cert))
        context.load_cert_chain(self.pki.admin_cert, self.pki.admin_key)
        return context

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request as the administrator, on a connection of its own. Blocks: not for the server's own loop.

        A ``body`` that is neither bytes nor text is sent as JSON.
        """
        return self.caller().call(method, path, body, headers)

    def caller(self) -> Caller:
        """The administrator."""
        if self._context is None:
            self._context = self.ssl_context()
        return Caller(self.url, self._context)

    def establish(self, definition: Object) -> Object:
        """Create a custom resource definition and wait until clients can use what it defines."""

        def ask(method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> tuple[int, Any]:
            answer = self.call(method, path, body, headers)
            is_json = answer.headers.get("content-type", "").startswith("application/json")
            return answer.status, answer.json if is_json else answer.body

        return establish(ask, definition)

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The same for coroutines."""
        return await asyncio.to_thread(self.call, method, path, body, headers)

    # On the loop of the caller

    async def __aenter__(self) -> Self:
        self._enter()
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    # In a thread of its own

    def __enter__(self) -> Self:
        self._enter()
        started: Future[None] = Future()
        self._stop = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="pilothouse", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set_result(None)
        assert self._thread is not None
        self._thread.join()

    def _run(self, started: Future[None]) -> None:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: Future[None]) -> None:
        try:
            await self._start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        await asyncio.wrap_future(self._stop)
        await self._end()

    # Both

    def _enter(self) -> None:
        if self._entered:
            raise RuntimeError("this server runs already: make another InProcessServer, or leave this one first")
        self._entered = True

    async def _start(self) -> None:
        with _reserved_port() as reserved:
            try:
                process = await self._make(reserved.getsockname()[1])
                await process.start()
                self._process = process
            except BaseException:
                self._clean_up()
                raise

    async def _end(self) -> None:
        try:
            assert self._process is not None
            await self._process.stop()
        finally:
            self._process = None
            await asyncio.to_thread(self._clean_up)

    async def _make(self, port: int) -> HostingProcess[Any]:
        """The process, not yet started, on this port unless flags name another."""
        self._options = await asyncio.to_thread(self._prepare, port)
        self._context = None
        return Process(self._options, self._clock)

    def _prepare(self, port: int) -> ServerOptions:
        options = parse(self._flags)
        if "data-dir" not in options.given:
            folder = self._given or self._closing.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-"))
            options.own.data_dir = str(Path(folder).absolute())
        elif self._given is not None:
            raise ValueError("both data_dir and --data-dir are given")
        if "bind-address" not in options.given:
            options.secure_serving.bind_address = _HOST
        if "secure-port" not in options.given:
            options.secure_serving.secure_port = port
            options.secure_serving.permit_port_sharing = True
        if self._living:
            options.living.enliven(options.given)
        errs = validate(complete(options))
        if errs:
            raise ValueError("; ".join(errs))
        self._closing.enter_context(claimed_folder(options))
        provision(options)
        return options

    def _clean_up(self) -> None:
        self._closing.close()
        self._entered = False


def _reserved_port() -> socket.socket:
    """A socket that keeps a free port for us until the server, which shares it, listens there."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((_HOST, 0))
    return sock
