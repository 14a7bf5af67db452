"""What is told of other servers and comes from themselves: asked for every minute and when their APIService changes.

Discovery and both versions of OpenAPI follow remote APIs in this way; what they ask for and what becomes of it differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.server import RemoteApis
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.supervision import Supervisor

REFRESH_SECONDS: Final = 60.0


class RemoteDocuments(ABC):
    """Follows remote APIs, with a queue of those that are to be asked."""

    def __init__(self, title: str, remotes: RemoteApis, proxy: AggregationProxy, *, workers: int = 1) -> None:
        self.remotes, self.proxy = remotes, proxy
        self.controller: Controller[GroupVersion] = Controller(title, self.reconcile, workers=workers)
        remotes.tell(self._changed)

    async def start(self, supervisor: Supervisor) -> None:
        """Ask those there are, then go on."""
        self.controller.start(supervisor)

    def _changed(self, gv: GroupVersion, remote: RemoteApi | None) -> None:
        if remote is None:
            self.forget(gv)
        elif self.concerns(remote):
            self.controller.queue.add(gv)

    async def reconcile(self, gv: GroupVersion) -> float | None:
        """Ask one server; after how many seconds again, None for not before it changes."""
        remote = self.remotes.found.get(gv)
        return None if remote is None or not self.concerns(remote) else await self.refresh(remote)

    def concerns(self, remote: RemoteApi) -> bool:
        """Whether a server is asked at all; by default one that is available."""
        return remote.is_available

    @abstractmethod
    def forget(self, gv: GroupVersion) -> None:
        """Nobody serves it any more."""

    @abstractmethod
    async def refresh(self, remote: RemoteApi) -> float | None:
        """Ask, and make something of the answer; while there is none, what was said last stays."""
