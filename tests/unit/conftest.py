"""Requests that no socket has seen, stores over a database of their own, and informers of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import resolve
from pilothouse.machinery.supervision import RestartPolicy, Supervisor
from pilothouse.machinery.user import User
from pilothouse.net.request_head import HeaderBlock, RequestLine
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher

Ask = Callable[..., APIRequest]


class Asked(APIRequest):
    """A request made of its parts."""

    __slots__ = ("sent",)

    def __init__(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> None:
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.headers = {name.lower().encode(): value.encode() for name, value in headers.items()}
        self.line = RequestLine(method, target.encode(), self.path, self.path, self.query, 1, None)
        self.block = HeaderBlock(self.headers, {})
        self.sent = body
        self.warnings = self.audit = self._query = self.removed_release = self.made = None
        self.is_private = False
        self.weight = len(body)
        self.authentication_seconds = self.queued_seconds = 0.0
        self.foreseen = None
        self.connection = SimpleNamespace(reads=False)  # type: ignore[assignment]
        self.credential_notes = ()
        self.user = User("admin")
        self.info = resolve(method, self.path, Query(self.query))

    async def body(self, limit: int = 0) -> bytes:
        return self.sent


@pytest.fixture
def ask() -> Ask:
    """``ask(method, target, body, accept=…)`` makes a request."""

    def make(method: str = "GET", target: str = "/api/v1/pods", body: bytes = b"", **headers: str) -> APIRequest:
        return Asked(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})

    return make


@pytest.fixture
async def cacher(tmp_path: Path) -> AsyncIterator[Cacher]:
    """A cache over a fresh database; it does nothing by the clock."""
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    yield cacher
    await cacher.close()
    await backend.close()


@pytest.fixture
async def storage(cacher: Cacher) -> StorageFactory:
    """Makes stores of any resource."""
    return StorageFactory(cacher)


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    """Restarts what fails without waiting."""
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001, most_seconds=0.01))
    yield supervisor
    await supervisor.close()


@pytest.fixture
async def informers(storage: StorageFactory, supervisor: Supervisor) -> InformerFactory:
    """Informers of built-in resources, already started."""
    factory = InformerFactory(lambda gvr: built_in_source(storage, gvr), supervisor)
    factory.start()
    return factory
