"""The other processes that serve with this one, as the life of a process meets them. Usually there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from pilothouse.cluster.workers import ALONE, Workers
from pilothouse.filters.types import Handler
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import Dialer
from pilothouse.net.listener import Acceptor
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process.backend import make_storage
from pilothouse.storage.stack import StorageStack

if TYPE_CHECKING:
    from pilothouse.process.serving import Serving


class Companions(Protocol):
    """What is done with them, in the order of a process's life."""

    @property
    def workers(self) -> Workers:
        """How the cluster sees them."""
        ...

    def make_storage(
        self, options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer
    ) -> StorageStack:
        """The store, or the way to it. Raises OSError and ValueError."""
        ...

    def guard(self, handler: Handler, storage: StorageStack) -> Handler:
        """What requests are handed to, once this process has seen what the others have written."""
        ...

    async def begin(self, supervisor: Supervisor) -> None:
        """Nothing is open yet."""

    async def store_opened(self, storage: StorageStack) -> None:
        """The store can be used."""

    def open_socket(self, options: ProcessOptions, serving: Serving) -> Acceptor:
        """Where connections come from. Raises OSError."""
        ...

    def connection_closed(self) -> None:
        """There is a connection less."""

    async def allow_hooks(self) -> None:
        """Return when the post-start hooks may run."""

    async def ready(self) -> None:
        """The hooks have run; return when the others are there too."""

    def stop(self) -> None:
        """This process begins to stop."""

    async def ended(self) -> None:
        """This process has answered all its requests; return when it may close the store."""

    async def close(self) -> None:
        """Part from them at once."""


class NoCompanions:
    """A process that serves alone."""

    workers = ALONE

    def make_storage(
        self, options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer
    ) -> StorageStack:
        return make_storage(options, identity, supervisor, dialer)

    def guard(self, handler: Handler, storage: StorageStack) -> Handler:
        return handler

    async def begin(self, supervisor: Supervisor) -> None:
        """Nobody to start."""

    async def store_opened(self, storage: StorageStack) -> None:
        """Nobody to serve."""

    def open_socket(self, options: ProcessOptions, serving: Serving) -> Acceptor:
        return options.secure_serving.bind()

    def connection_closed(self) -> None:
        """Nobody wants to know."""

    async def allow_hooks(self) -> None:
        """At once."""

    async def ready(self) -> None:
        """Nobody to wait for."""

    def stop(self) -> None:
        """Nobody to tell."""

    async def ended(self) -> None:
        """Nobody to wait for."""

    async def close(self) -> None:
        """Nobody to part from."""


NO_COMPANIONS: Final = NoCompanions()
