"""The discovery routes of a whole chain: ``/api``, ``/apis``, ``/apis/<group>``, and the index of all paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.apis.resources import Version
from pilothouse.endpoints import discovery
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.negotiation import JSON, PROTOBUF, Media
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import error_response, page_not_found
from pilothouse.machinery import errors, kube_versions
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer, json_route, only_get
from pilothouse.server.routes import RouteHandler


class ChainDiscovery:
    """What all servers of a chain serve together. ``refresh`` after a group version came or went."""

    def __init__(self, front: GenericAPIServer, address: Callable[[], str]) -> None:
        self._front = front
        self._address = address
        self._groups: set[str] = set()
        self._fixed_groups: set[str] = set()
        """Groups that are there from the start; those of custom resources come and go."""
        self._documents: dict[str, discovery.KeptDocument] = {}

    def install(self) -> None:
        """Add the routes to the first server of the chain."""
        routes = self._front.routes
        api = only_get(self._top("/api", lambda: discovery.api_versions(self._address())))
        routes.add("/api", api)
        routes.add("/api/", api, hidden=True)
        routes.add("/apis", self._top("/apis", self._group_list))
        routes.add("/apis/", self._plain("/apis", self._group_list))
        routes.add("/", json_route(lambda: {"paths": self._front.paths()}), hidden=True)
        self._front.chain()[-1].fall_back_to(self._unknown)
        self.refresh()
        self._fixed_groups = self._groups

    def refresh(self) -> None:
        """Forget all documents and follow the set of served groups."""
        self._documents.clear()
        groups = {gv.group for gv in self._versions() if gv.group}
        for group in self._groups - groups:
            self._front.routes.remove(f"/apis/{group}")
            self._front.routes.remove(f"/apis/{group}/")
        for group in groups - self._groups:
            handler = self._plain(f"/apis/{group}", lambda group=group: self._group(group))  # type: ignore[misc]
            self._front.routes.add(f"/apis/{group}", handler)
            self._front.routes.add(f"/apis/{group}/", handler, hidden=True)
        self._groups = groups

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        """A group version of custom resources came, changed, or (None) went."""
        self.refresh()

    async def _unknown(self, request: APIRequest) -> Response:
        """What nobody serves: a Status below a known group, plain text elsewhere."""
        prefix, _, rest = request.path[1:].partition("/")
        known = prefix == "apis" and rest.partition("/")[0] in self._fixed_groups
        if prefix == "api" or known:
            return error_response(request, errors.not_found_anything())
        return page_not_found()

    def _versions(self) -> dict[GroupVersion, Version]:
        """All served versions, by priority."""
        served = {gv: v.version for server in self._front.chain() for gv, v in server.versions.items()}
        return dict(sorted(served.items(), key=lambda item: _rank(item[1])))

    def _by_group(self) -> dict[str, list[Version]]:
        groups: dict[str, list[Version]] = {}
        for version in self._versions().values():
            groups.setdefault(version.group, []).append(version)
        return groups

    def _group(self, group: str) -> discovery.Document:
        return discovery.group_document(group, [v.group_version for v in self._by_group()[group]])

    def _group_list(self) -> discovery.Document:
        groups = {g: [v.group_version for v in versions] for g, versions in self._by_group().items() if g}
        return discovery.group_list(groups)

    def _aggregated(self, path: str) -> discovery.Document:
        core = path == "/api"
        return discovery.aggregated({g: v for g, v in self._by_group().items() if bool(g) is not core})

    def _kept(self, key: str, make: Callable[[], discovery.Document]) -> discovery.KeptDocument:
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = discovery.KeptDocument(make)
        return document

    def _plain(self, path: str, make: Callable[[], discovery.Document]) -> RouteHandler:
        async def serve(request: APIRequest) -> Response:
            return self._kept(path, make).respond(request)

        return serve

    def _top(self, path: str, make: Callable[[], discovery.Document]) -> RouteHandler:
        """A path that also serves the aggregated form."""

        async def serve(request: APIRequest) -> Response:
            content_type = discovery.wants_aggregated(request)
            if not content_type:
                return self._kept(path, make).respond(request)
            document = self._kept(f"{path} aggregated", lambda: self._aggregated(path))
            media = Media(PROTOBUF if content_type.startswith(PROTOBUF.encode()) else JSON)
            return document.respond_tagged(request, media, content_type)

        return serve


def _rank(version: Version) -> tuple[int, str, int, Any]:
    group, own = version.priority or (0, 0)
    return (-group, version.group, -own, kube_versions.preferred_first(version.version))
