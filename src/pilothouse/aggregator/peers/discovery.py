"""Who the peers are, and what each of them serves.

Every API server keeps a Lease. When one appears, or is held by another process than before, the server behind it is
asked for its aggregated discovery, without what it knows of its own peers. A server that does not answer yet is asked
again after a while: its Lease is there before it serves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.aggregator.peers.apis import PeerApis, PeerEntry
from pilothouse.aggregator.peers.merging import Document
from pilothouse.aggregator.peers.metrics import FETCH_DISCOVERY, HOST_PORT_RESOLUTION
from pilothouse.aggregator.peers.proxy import PeerProxy
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge

_KIND: Final = "APIGroupDiscoveryList"
_V2: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_KIND}"
_ACCEPT: Final = f"{_V2};profile=nopeer,{_V2},application/json"
IsServer = Callable[[Object], bool]


class PeerDiscovery:
    """Keeps ``apis`` informed of every peer."""

    def __init__(self, identity: str, leases: Informer, is_server: IsServer, proxy: PeerProxy, apis: PeerApis) -> None:
        """``is_server`` tells the Leases of API servers from others."""
        self._identity, self._leases, self._is_server = identity, leases, is_server
        self._proxy, self._apis, self._metrics = proxy, apis, apis.metrics
        self.controller: Controller[str] = Controller("discovery of peers", self.reconcile, wait_for=(leases,))
        leases.add_handler(self._came, self._changed, self._came, name="peers")

    def start(self, supervisor: Supervisor) -> None:
        """Ask those there are, then go on."""
        self.controller.start(supervisor)

    async def reconcile(self, name: str) -> None:
        """Ask one peer what it serves. Raises what makes it come back later."""
        lease = next((each for each in self._leases.lister.list() if each["metadata"]["name"] == name), None)
        if lease is None or not self._is_peer(lease):
            self._apis.set_peer(name, None)
            return
        try:
            entry = await self._ask(name)
        except LookupError:
            self._metrics.count_sync_error(HOST_PORT_RESOLUTION)
            self._apis.set_peer(name, None)
            raise OutgoingError("its address is not in the store") from None
        except (OutgoingError, BodyTooLarge, TimeoutError, ValueError) as error:
            self._metrics.count_sync_error(FETCH_DISCOVERY)
            self._apis.set_peer(name, None)
            raise OutgoingError(str(error) or "it took too long to answer") from None
        self._apis.set_peer(name, entry)

    async def _ask(self, name: str) -> PeerEntry:
        resources: set[GroupVersionResource] = set()
        groups: list[Document] = []
        for path in ("/api", "/apis"):
            document = await self._proxy.fetch(name, path, _ACCEPT)
            try:
                read = [(_group_name(item), item) for item in read_groups(document)]
                resources.update(gvr for group, item in read for gvr in _resources_of(group, item))
            except (LookupError, TypeError, AttributeError):
                raise ValueError(f"{path} is no discovery document") from None
            groups += [item for group, item in read if group]
        return PeerEntry(frozenset(resources), tuple(groups))

    def _is_peer(self, lease: Object) -> bool:
        is_own = lease["metadata"]["name"] == self._identity
        return not is_own and self._is_server(lease) and (lease.get("spec") or {}).get("holderIdentity") is not None

    def _came(self, lease: Object) -> None:
        if self._is_peer(lease):
            self.controller.queue.add(lease["metadata"]["name"])

    def _changed(self, old: Object, new: Object) -> None:
        if _holder(old) != _holder(new) or not self._is_peer(old):
            self._came(new)


def read_groups(document: Document) -> list[Document]:
    """The groups of an aggregated discovery document. Raises ValueError for any other."""
    if document.get("kind") != _KIND:
        raise ValueError(f"no {_KIND}")
    return list(document.get("items") or ())


def _group_name(item: Document) -> str:
    return str((item.get("metadata") or {}).get("name", ""))


def _resources_of(group: str, item: Document) -> list[GroupVersionResource]:
    return [
        GroupVersionResource(group, version["version"], resource["resource"])
        for version in item.get("versions") or ()
        for resource in version.get("resources") or ()
    ]


def _holder(lease: Object) -> str | None:
    holder: str | None = (lease.get("spec") or {}).get("holderIdentity")
    return holder
