"""The backend with its encryption and caches, as one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilothouse.machinery.gvk import GroupResource
from pilothouse.storage.backends.contract import Backend, Foreseen
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.encryption.metrics import EncryptionMetrics
from pilothouse.storage.encryption.reloading import Encryption
from pilothouse.storage.stack import StorageStack

KEYS = """
kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [secrets]
  providers:
  - secretbox: {keys: [{name: a, secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}]}
"""


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    return SQLiteBackend(str(tmp_path / "store.db"))


async def test_it_opens_and_closes_together(backend: Backend) -> None:
    stack = StorageStack(backend)
    assert stack.health_error() == "the store is not open"
    await stack.open()
    assert stack.health_error() == ""
    assert stack.is_stale is None
    await stack.close()
    await stack.close()
    assert stack.health_error() == "the store is not open"


async def test_values_are_encrypted_below_the_caches(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(KEYS)

    def encrypt(inner: Backend, metrics: EncryptionMetrics) -> Encryption:
        return Encryption(inner, str(path), "/registry", metrics, reload=True)

    stack = StorageStack(backend, encrypt)
    await stack.open()
    try:
        await stack.cacher.backend.create("/registry/secrets/a/b", b'{"kind":"Secret"}')
        stored = await backend.get("/registry/secrets/a/b")
        assert stored is not None
        assert stored.value.startswith(b"k8s:enc:secretbox:v1:a:")
        await stack.poll_files()
        assert stack.is_stale is not None
        assert not await stack.is_stale("/registry/secrets/a/b")
    finally:
        await stack.close()


async def test_what_was_opened_before_a_failure_is_closed(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = StorageStack(backend)

    async def fail() -> None:
        raise OSError("no memory")

    monkeypatch.setattr(stack.cacher, "open", fail)
    with pytest.raises(OSError, match="no memory"):
        await stack.open()
    assert backend.is_open
    await stack.close()
    assert not backend.is_open


async def test_the_store_that_keeps_a_resource_is_asked_ahead(backend: Backend, tmp_path: Path) -> None:
    class Foreseeing(SQLiteBackend):
        def foresee(self) -> Foreseen:  # type: ignore[override]
            return asyncio.get_running_loop().create_future()

    events = StorageStack(Foreseeing(str(tmp_path / "events.db")))
    stack = StorageStack(backend, others={GroupResource("", "events"): events})
    assert stack.foresee("", "events") is not None
    assert stack.foresee("", "pods") is None
