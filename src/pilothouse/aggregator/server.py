"""The aggregator: the first server, which decides whose path it is.

    /apis/<group>/<version>…               of an APIService with a service     → the proxy
    /openapi/v3/apis/<group>/<version>     likewise                            → the proxy
    a resource that only peers serve                                           → a peer
    everything else                                                            → what is served here

Which group versions are remote is looked up in a table that follows the stored APIServices; what only peers serve, in
one that follows the peers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi, read_remote
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer

if TYPE_CHECKING:
    from pilothouse.aggregator.peers.routing import Peers

_DOCUMENTS: Final = "/openapi/v3"
OnRemote = Callable[[GroupVersion, RemoteApi | None], object]


class RemoteApis:
    """The group versions that others serve. ``listeners`` hear of each that came, changed, or (None) went."""

    def __init__(self, informers: InformerFactory) -> None:
        self.found: dict[GroupVersion, RemoteApi] = {}
        self.documented: set[GroupVersion] = set()
        """Those of which the other server has an OpenAPI document of version 3, as far as is known."""
        self._listeners: list[OnRemote] = []
        self._informer = informers.of("apiregistration.k8s.io", "v1", "apiservices")
        self._informer.add_handler(self._came, lambda old, new: self._came(new), self._went, name="aggregator")

    async def start(self, supervisor: Supervisor) -> None:
        """Wait until all that are stored are known here."""
        await self._informer.wait_synced()

    def unrouted(self) -> str:
        """The health check: stored APIServices that requests do not follow."""
        stored = (read_remote(each) for each in self._informer.lister.list())
        missing = [each.name for each in stored if each is not None and each.group_version not in self.found]
        return f"APIServices that are not routed: {' '.join(sorted(missing))}" if missing else ""

    def tell(self, listener: OnRemote) -> None:
        """Have a listener hear of what there is, and of every change."""
        self._listeners.append(listener)
        for gv, remote in self.found.items():
            listener(gv, remote)

    def _came(self, api_service: Object) -> None:
        remote = read_remote(api_service)
        if remote is None:
            self._went(api_service)
        elif self.found.get(remote.group_version) != remote:
            self.found[remote.group_version] = remote
            self._told(remote.group_version, remote)

    def _went(self, api_service: Object) -> None:
        spec = api_service["spec"]
        gv = GroupVersion(spec.get("group", ""), spec.get("version", ""))
        if self.found.pop(gv, None) is not None:
            self.documented.discard(gv)
            self._told(gv, None)

    def _told(self, gv: GroupVersion, remote: RemoteApi | None) -> None:
        for listener in self._listeners:
            listener(gv, remote)


class Aggregator(GenericAPIServer):
    """APIServices, what they send elsewhere, and everything local through the delegate."""

    def __init__(
        self,
        delegate: GenericAPIServer,
        remotes: RemoteApis | None,
        proxy: AggregationProxy | None,
        peers: Peers | None,
    ) -> None:
        super().__init__("kube-aggregator", delegate)
        self._peers = peers
        self._remotes = {} if remotes is None else remotes.found
        self._documented = set() if remotes is None else remotes.documented
        self._proxy = proxy

    def handle(self, request: APIRequest) -> Coroutine[Any, Any, Response]:
        """Serve the request, pass it on, or hand it down. No coroutine of its own: every request comes by here."""
        if self._remotes and self._proxy is not None:
            remote = self._remote_of(request)
            if remote is not None:
                return self._proxy.handle(request, remote)
        if self._peers is not None and self._peers.apis.found:
            answer = self._peers.route(request)
            if answer is not None:
                return answer
        return super().handle(request)

    def answering(self, request: APIRequest) -> str:
        """The name of a server of this chain, or of the APIService whose server is asked."""
        remote = self._remote_of(request)
        return super().answering(request) if remote is None else remote.name

    def _remote_of(self, request: APIRequest) -> RemoteApi | None:
        info = request.info
        gv = info.group_version if info.is_resource else _group_version_of(request.path)
        remote = self._remotes.get(gv)
        is_served = remote is not None and (gv in self._documented or not request.path.startswith(_DOCUMENTS))
        return remote if is_served else None


def _group_version_of(path: str) -> GroupVersion:
    parts = path.removeprefix(_DOCUMENTS).split("/", 4)[1:] or [""]
    if parts[0] == "apis" and len(parts) >= 3:
        return GroupVersion(parts[1], parts[2])
    return GroupVersion("", parts[1]) if parts[0] == "api" and len(parts) >= 2 else GroupVersion("", "")


def build_aggregator(
    own: Iterable[InstalledVersion],
    delegate: GenericAPIServer,
    remotes: RemoteApis | None = None,
    proxy: AggregationProxy | None = None,
    peers: Peers | None = None,
) -> GenericAPIServer:
    """APIServices of others by the proxy, what only peers serve by them, and everything local through the delegate."""
    server = Aggregator(delegate, remotes, proxy, peers)
    for version in own:
        server.install_version(version)
    return server
