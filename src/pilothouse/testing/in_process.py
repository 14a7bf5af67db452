"""An API server inside the process of a test: the real one, on a port of its own, with a store of its own.

    with InProcessServer() as server:              in a thread of its own, for code that blocks
    async with InProcessServer() as server:        on the loop of the test

Nothing is left out: filters, authentication, RBAC, admission and the SQLite store work as in ``pilothouse serve``. It
is ready when the block begins, in a fraction of a second. When the block ends, requests are drained, watches end, and
the data is removed unless ``data_dir`` was given. Any number of servers can run side by side.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pilothouse.app.assembly import Assembly, assemble
from pilothouse.app.pki import Pki
from pilothouse.options import ServerOptions, complete, parse, provision, validate

_HOST = "127.0.0.1"
_CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said. Header names are in lower case; repeated headers are joined by a comma."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class InProcessServer:
    """A server for the time of a ``with`` or ``async with`` block. ``flags`` are those of ``pilothouse serve``."""

    def __init__(self, *flags: str, data_dir: str | Path | None = None) -> None:
        self._flags = flags
        self._given = data_dir
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._data_dir = Path()
        self._port = 0
        self._assembly: Assembly | None = None
        self._thread: threading.Thread | None = None
        self._stop: Future[None] = Future()

    # How to reach it

    @property
    def url(self) -> str:
        """Where the server listens, such as ``https://127.0.0.1:34567``."""
        return f"https://{_HOST}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def data_dir(self) -> Path:
        """The folder with the store, the certificates and the kubeconfig."""
        return self._data_dir

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator, with all certificates in it."""
        return self._data_dir / "admin.kubeconfig"

    @property
    def pki(self) -> Pki:
        """The certificates: ``pki.ca_cert`` to trust, ``pki.admin_cert`` and ``pki.admin_key`` to show."""
        return Pki(self._data_dir / "pki")

    @property
    def assembly(self) -> Assembly:
        """The running server's parts, for tests that look inside."""
        assert self._assembly is not None, "the server is not running"
        return self._assembly

    def ssl_context(self) -> ssl.SSLContext:
        """Trusts this server and authenticates as its administrator."""
        context = ssl.create_default_context(cafile=str(self.pki.ca_cert))
        context.load_cert_chain(self.pki.admin_cert, self.pki.admin_key)
        return context

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request as the administrator, on a connection of its own. Blocks: not for the server's own loop.

        A ``body`` that is neither bytes nor text is sent as JSON.
        """
        connection = HTTPSConnection(_HOST, self._port, timeout=_CALL_SECONDS, context=self.ssl_context())
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name in sent):
                sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        joined: dict[str, str] = {}
        for name, value in answer.getheaders():
            name = name.lower()
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return Answer(answer.status, joined, data)

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The same for coroutines."""
        return await asyncio.to_thread(self.call, method, path, body, headers)

    # On the loop of the caller

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    # In a thread of its own

    def __enter__(self) -> Self:
        started: Future[None] = Future()
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

    async def _start(self) -> None:
        with _reserved_port() as reserved:
            self._port = reserved.getsockname()[1]
            options = await asyncio.to_thread(self._prepare)
            self._assembly = assemble(options)
            try:
                await self._assembly.start()
            except BaseException:
                await self._assembly.close()
                self._clean_up()
                raise

    async def _end(self) -> None:
        try:
            await self.assembly.stop()
        finally:
            self._assembly = None
            await asyncio.to_thread(self._clean_up)

    def _prepare(self) -> ServerOptions:
        if self._given is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pilothouse-")
            self._data_dir = Path(self._temporary.name)
        else:
            self._data_dir = Path(self._given).absolute()
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = (f"--data-dir={self._data_dir}", f"--bind-address={_HOST}", f"--secure-port={self._port}")
        options = complete(parse([*own, "--permit-port-sharing", *self._flags]))
        faults = validate(options)
        if faults:
            self._clean_up()
            raise ValueError("; ".join(faults))
        provision(options)
        return options

    def _clean_up(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _reserved_port() -> socket.socket:
    """A socket that keeps a free port for us until the server, which shares it, listens there."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((_HOST, 0))
    return sock
