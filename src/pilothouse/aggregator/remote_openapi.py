"""OpenAPI documents of version 3 that other servers have: their addresses are listed, their content is passed on.

Each server is asked for its own index every minute and whenever its APIService changes. An address has a hash in it, so
clients that have a document already need not ask for it again; one that is asked for is fetched by the proxy, like any
other request below the group version. A server that has none gets one that is made here of its document of version 2,
so that ``kubectl explain`` works for it too.
"""

from __future__ import annotations

from typing import Final

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.remote_documents import REFRESH_SECONDS, RemoteDocuments
from pilothouse.aggregator.remote_swagger import OPENAPI_USER, SwaggerDownload
from pilothouse.aggregator.server import RemoteApis
from pilothouse.machinery import large_json
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.workers import weighed
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge
from pilothouse.openapi.foreign import Foreign, converted_swagger
from pilothouse.openapi.registry import OpenApi

_LIMIT: Final = 1 << 20


class RemoteOpenApi(RemoteDocuments):
    """Keeps the addresses of documents in the index right."""

    def __init__(self, remotes: RemoteApis, proxy: AggregationProxy, openapi: OpenApi) -> None:
        super().__init__("OpenAPI v3 of remote APIs", remotes, proxy)
        self._openapi = openapi
        self._downloads: dict[GroupVersion, SwaggerDownload] = {}
        """Of servers that have no documents of version 3."""

    def forget(self, gv: GroupVersion) -> None:
        """Its document is listed no more."""
        self._openapi.set_address(gv, "")
        self._openapi.set_converted(gv, None)
        self._downloads.pop(gv, None)

    async def refresh(self, remote: RemoteApi) -> float | None:
        """Ask for the index, or for the document of version 2 of who has none."""
        if remote.group_version not in self._downloads:
            try:
                status, data, _ = await self.proxy.fetch(remote, "/openapi/v3", "", _LIMIT, user=OPENAPI_USER)
                if status != 404:
                    self._list(remote, await weighed(len(data), large_json.loads, data) if status == 200 else {})
                    return REFRESH_SECONDS
            except (OutgoingError, BodyTooLarge, TimeoutError, ValueError, LookupError, TypeError, AttributeError):
                return REFRESH_SECONDS
        return await self._convert(remote)

    def _list(self, remote: RemoteApi, index: dict[str, dict[str, dict[str, str]]]) -> None:
        found = (index["paths"].get(remote.path[1:]) or {}).get("serverRelativeURL", "")
        if isinstance(found, str) and (not found or found.startswith(f"/openapi/v3{remote.path}")):
            self._openapi.set_address(remote.group_version, found)
            (self.remotes.documented.add if found else self.remotes.documented.discard)(remote.group_version)

    async def _convert(self, remote: RemoteApi) -> float | None:
        gv = remote.group_version

        def keep(converted: Foreign) -> None:
            if gv in self._downloads:
                self._openapi.set_converted(gv, converted)

        download = self._downloads.setdefault(gv, SwaggerDownload())
        return await download.refresh(self.proxy, remote, converted_swagger, keep)
