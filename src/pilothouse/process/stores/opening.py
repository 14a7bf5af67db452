"""Which store a word on the command line means: a folder or file of the embedded store, or the addresses of an etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pilothouse.registry.store.stored_form import MediaType
from pilothouse.storage.backends.contract import Backend
from pilothouse.storage.backends.sqlite import SQLiteBackend


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A store by its name, and how an etcd among them is spoken to."""

    name: str
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""

    @property
    def is_etcd(self) -> bool:
        """Whether it is a list of URLs."""
        return "://" in self.name

    @property
    def media(self) -> MediaType:
        """What values are written there as."""
        return MediaType.PROTOBUF if self.is_etcd else MediaType.OWN_JSON

    @property
    def path(self) -> Path:
        """The file of an embedded store."""
        path = Path(self.name)
        return path / "store.db" if path.is_dir() or not path.suffix else path

    @asynccontextmanager
    async def opened(self, *, create: bool = False) -> AsyncIterator[Backend]:
        """The open store; an embedded one that does not exist is made only if asked for. Raises StorageError."""
        backend = self._make(create=create)
        await backend.open()
        try:
            yield backend
        finally:
            await backend.close()

    def _make(self, *, create: bool) -> Backend:
        if self.is_etcd:
            from pilothouse.storage.backends.etcd import EtcdBackend, Transport  # an optional extra

            return EtcdBackend(Transport(tuple(self.name.split(",")), self.cafile, self.certfile, self.keyfile))
        if not create and not self.path.exists():
            raise FileNotFoundError(f"there is no store at {self.path}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return SQLiteBackend(str(self.path), upkeep_seconds=0)
