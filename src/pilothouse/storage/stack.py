"""Everything between the stores of resources and the disk, opened and closed as one.

    cacher        reads and watches from memory
    encryption    where a configuration file asks for it
    backend       keeps the log

Some resources may have a stack of their own, in another store (events, usually).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pilothouse.machinery.closing import Closing
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.metrics import Instrument
from pilothouse.machinery.supervision import Supervisor
from pilothouse.storage.backends.contract import Backend, Foreseen
from pilothouse.storage.cacher import Cacher, Watcher
from pilothouse.storage.encryption.metrics import EncryptionMetrics

if TYPE_CHECKING:
    from pilothouse.storage.encryption.reloading import Encryption

MakeEncryption = Callable[[Backend, EncryptionMetrics], "Encryption"]
StoreError = Callable[[], str]
IsStale = Callable[[str], Awaitable[bool]]


class StorageStack:
    """A backend and what stands on it. Any number of clusters can live in it, each under a root of its own."""

    def __init__(
        self,
        backend: Backend,
        encrypt: MakeEncryption | None = None,
        identity: str = "",
        *,
        others: Mapping[GroupResource, StorageStack] | None = None,
        health: StoreError | None = None,
        readiness: StoreError | None = None,
        supervisor: Supervisor | None = None,
        counted: Sequence[Instrument] = (),
        size: Callable[[], int] = lambda: 0,
    ) -> None:
        """``others`` are the stacks of resources that are not kept in this one.

        ``health`` and ``readiness`` tell why the store cannot be used, where more is known than whether it is open.
        ``counted`` is what the backend counts, ``size`` tells how many bytes it takes, 0 where that is not known.
        """
        self.backend = backend
        self._others, self._counted, self._size = others or {}, tuple(counted), size
        self.health_error = health or self._open_error
        """Why the store cannot be used; empty if it can."""
        self.readiness_error = readiness or self.health_error
        """The same for who wants to know whether to send requests here."""
        self._encryption_metrics = EncryptionMetrics(identity)
        self.encryption = None if encrypt is None else encrypt(backend, self._encryption_metrics)
        self.cacher = Cacher(backend if self.encryption is None else self.encryption.backend, supervisor=supervisor)
        self._closing = Closing("storage")

    @property
    def is_stale(self) -> IsStale | None:
        """Tells whether a stored value should be written anew even if nothing changed: its encryption is outdated."""
        return None if self.encryption is None else self.encryption.backend.is_stale

    def instruments(self) -> tuple[Instrument, ...]:
        """What is counted here."""
        reloads = () if self.encryption is None else self.encryption.reloads.instruments()
        return (*self._encryption_metrics.instruments(), *reloads, *self._counted)

    def cachers(self) -> list[Cacher]:
        """The caches of all stores."""
        return [self.cacher, *(other.cacher for other in self.apart())]

    def size(self) -> int:
        """Bytes of all stores, as far as they are known. May look at files: not to be called on the event loop."""
        return self._size() + sum(other.size() for other in self.apart())

    def cacher_for(self, resource: GroupResource) -> Cacher:
        """The caches that a resource's belongs to."""
        other = self._others.get(resource)
        return self.cacher if other is None else other.cacher

    def foresee(self, group: str, resource: str) -> Foreseen | None:
        """Begin to find out where the store of a resource stands, for a read that will want to know."""
        cacher = self.cacher_for(GroupResource(group, resource)) if self._others else self.cacher
        return cacher.backend.foresee()

    def _open_error(self) -> str:
        return "" if self.backend.is_open else "the store is not open"

    def stop_serving_watches(self) -> list[Watcher]:
        """Let no more watches of clients begin; returns those there are, for the caller to end."""
        ending = self.cacher.stop_serving_watches()
        for other in self.apart():
            ending += other.stop_serving_watches()
        return ending

    async def open(self) -> None:
        """Open all of it; what was opened before a failure waits for ``close``."""
        await self.backend.open()
        self._closing.add("the backend", self.backend.close)
        if self.encryption is not None:
            self._closing.add("the encryption", self.encryption.close)
            await self.encryption.start()
        await self.cacher.open()
        self._closing.add("the caches", self.cacher.close)
        for other in self.apart():
            self._closing.add("another store", other.close)
            await other.open()

    async def poll_files(self) -> None:
        """Look whether the encryption's configuration changed."""
        if self.encryption is not None:
            await self.encryption.poll()
        for other in self.apart():
            await other.poll_files()

    async def close(self) -> None:
        """Close what is open."""
        await self._closing.close()

    def apart(self) -> list[StorageStack]:
        """The stacks of resources that are not kept in this one, in the order of their flags."""
        return list({id(other): other for other in self._others.values()}.values())
