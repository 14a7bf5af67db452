"""The discovery routes of a whole chain: ``/api``, ``/apis``, ``/apis/<group>``, and the index of all paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from pilothouse.apis.resources import Version
from pilothouse.endpoints import discovery
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.negotiation import Media, negotiate_aggregated
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response, page_not_found
from pilothouse.machinery import errors, kube_versions
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.metrics import Counter, Instrument
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import RouteHandler, json_route, only_content, only_get

_ROUTED: Final = frozenset({"/api", "/apis/apiregistration.k8s.io"})
"""Documents that a router hands out; the aggregator serves the others itself, and refuses in other words."""
_ROUTED_ROOTS: Final = frozenset({"api", "version"})
"""Below these paths a router says what is not found."""
_MERGED: Final = "/apis merged"
"""The document of all groups, those that only peers serve included."""


class PeerMetrics(Protocol):
    """Counts what was asked for."""

    def count_merged(self, *, kept: bool) -> None: ...

    def count_nopeer(self) -> None: ...


class PeerGroups(Protocol):
    """What other servers of the same cluster serve."""

    @property
    def metrics(self) -> PeerMetrics: ...

    def merge(self, groups: Sequence[discovery.Document]) -> list[discovery.Document]:
        """The groups of aggregated discovery, together with those of the others."""
        ...


class ChainDiscovery:
    """What all servers of a chain serve together.

    ``refresh`` looks at everything anew; ``version_changed`` costs the same however many group versions there are.
    Documents are forgotten when something in them changes and made again when they are asked for.
    """

    def __init__(
        self, front: GenericAPIServer, address: Callable[[], str], *, core: bool = True, peers: PeerGroups | None = None
    ) -> None:
        """``core``: whether the chain serves the group without a name, and ``/api`` with it.

        With ``peers``, clients that ask for all groups at once get theirs too, unless they ask for this server alone.
        """
        self._front, self._core, self._peers = front, core, peers
        self._address = address
        self._groups: dict[str, dict[GroupVersion, Version]] = {}
        self._fixed_groups: frozenset[str] = frozenset()
        """Groups that are there from the start; those of custom resources come and go."""
        self._documents: dict[str, discovery.KeptDocument] = {}
        self._remote: set[GroupVersion] = set()
        self._aggregations = Counter(
            "aggregator_discovery_aggregation_count_total",
            "[ALPHA] How often discovery of all groups was put together.",
        )

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return [self._aggregations]

    def install(self) -> None:
        """Add the routes to the first server of the chain."""
        routes = self._front.routes
        if self._core:
            api = only_get(only_content(self._top("/api", lambda: discovery.api_versions(self._address()))))
            routes.add_with_slash("/api", api)
        routes.add("/apis", self._top("/apis", self._group_list))
        routes.add("/apis/", self._plain("/apis", self._group_list))
        index = json_route(lambda: {"paths": self._front.paths()})
        routes.add("/", index, hidden=True)
        routes.add("/index.html", index, hidden=True)
        self._front.chain()[-1].fall_back_to(self._unknown)
        self.refresh()
        self._fixed_groups = frozenset(self._groups)

    def refresh(self) -> None:
        """Forget all documents and follow the set of served groups."""
        served = {gv: each for server in self._front.chain() for gv, each in server.versions.items()}
        known = [gv for versions in self._groups.values() for gv in versions if gv not in self._remote]
        for gv in known:
            if gv not in served:
                self.version_changed(gv, None)
        for gv, each in served.items():
            self.version_changed(gv, each)

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        """A group version came, changed, or (None) went."""
        if gv not in self._remote:
            self._note(gv, None if version is None else version.version)

    def remote_changed(self, gv: GroupVersion, version: Version | None) -> None:
        """A group version of another server came, changed, or (None) went. It hides one that is served here."""
        if version is not None:
            self._remote.add(gv)
            self._note(gv, version)
            return
        self._remote.discard(gv)
        local = next((server.versions[gv] for server in self._front.chain() if gv in server.versions), None)
        self._note(gv, None if local is None else local.version)

    def peers_changed(self) -> None:
        """Peers came or went, or serve something else."""
        self._documents.pop(_MERGED, None)

    def _note(self, gv: GroupVersion, version: Version | None) -> None:
        group = gv.group
        known = group in self._groups
        if version is not None:
            self._groups.setdefault(group, {})[gv] = version
        elif known:
            self._groups[group].pop(gv, None)
            if not self._groups[group]:
                del self._groups[group]
        for key in (f"/apis/{group}", "/apis", "/apis aggregated", _MERGED, *(() if group else ("/api aggregated",))):
            self._documents.pop(key, None)
        if group and known is not (group in self._groups):
            self._route(group, served=not known)

    def _route(self, group: str, *, served: bool) -> None:
        path, routes = f"/apis/{group}", self._front.routes
        if not served:
            routes.remove_with_slash(path)
            return
        handler = self._plain(path, lambda: self._group(group))
        if path in _ROUTED:
            handler = only_get(only_content(handler))
        routes.add_with_slash(path, handler)

    async def _unknown(self, request: APIRequest) -> Response:
        """What nobody serves: a Status below a known group, plain text elsewhere."""
        prefix, _, rest = request.path[1:].partition("/")
        group = rest.partition("/")[0]
        known = prefix == "apis" and group != "" and group in self._fixed_groups
        if (prefix in _ROUTED_ROOTS and request.path != f"/{prefix}") or known:
            return error_response(request, errors.not_found_anything())
        return page_not_found()

    def _sorted(self, group: str) -> list[Version]:
        return sorted(self._groups[group].values(), key=_rank)

    def _by_group(self) -> dict[str, list[Version]]:
        """All served versions, groups and versions by their priority."""
        groups = {group: self._sorted(group) for group in self._groups}
        return dict(sorted(groups.items(), key=lambda item: _rank(item[1][0])))

    def _group(self, group: str) -> discovery.Document:
        return discovery.group_document(group, [v.group_version for v in self._sorted(group)])

    def _group_list(self) -> discovery.Document:
        groups = {g: [v.group_version for v in versions] for g, versions in self._by_group().items() if g}
        return discovery.group_list(groups)

    def _aggregated(self, path: str) -> discovery.Document:
        core = path == "/api"
        self._aggregations.labelled().value += 1
        return discovery.aggregated({g: v for g, v in self._by_group().items() if bool(g) is not core})

    def _merged(self, peers: PeerGroups) -> discovery.Document:
        document = self._aggregated("/apis")
        return {**document, "items": peers.merge(document["items"])}

    def _kept(self, key: str, make: Callable[[], discovery.Document]) -> discovery.KeptDocument:
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = discovery.KeptDocument(make)
        return document

    def _plain(self, path: str, make: Callable[[], discovery.Document]) -> RouteHandler:
        async def serve(request: APIRequest) -> Response:
            return self._kept(path, make).respond(request, routed=path in _ROUTED)

        return serve

    def _top(self, path: str, make: Callable[[], discovery.Document]) -> RouteHandler:
        """A path that also serves the aggregated form."""

        async def serve(request: APIRequest) -> Response:
            media = negotiate_aggregated(request)
            if media is None:
                return self._kept(path, make).respond(request, routed=path in _ROUTED)
            document = self._with_peers(media) if path == "/apis" else None
            if document is None:
                document = self._kept(f"{path} aggregated", lambda: self._aggregated(path))
            return await document.respond_tagged(request, media)

        return serve

    def _with_peers(self, media: Media) -> discovery.KeptDocument | None:
        peers = self._peers
        if peers is None:
            return None
        if media.profile == "nopeer":
            peers.metrics.count_nopeer()
            return None
        peers.metrics.count_merged(kept=_MERGED in self._documents)
        return self._kept(_MERGED, lambda: self._merged(peers))


def _rank(version: Version) -> tuple[int, str, int, Any]:
    group, own = version.priority
    return (-group, version.group, -own, kube_versions.preferred_first(version.version))
