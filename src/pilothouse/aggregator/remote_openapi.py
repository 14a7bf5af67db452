"""OpenAPI documents of version 3 that other servers have: their addresses are listed, their content is passed on.

Each server is asked for its own index every minute and whenever its APIService changes. An address has a hash in it, so
clients that have a document already need not ask for it again; one that is asked for is fetched by the proxy, like any
other request below the group version. A server that has none gets one that is made here of its document of version 2,
so that ``kubectl explain`` works for it too.
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.remote_swagger import OPENAPI_USER, NoSwagger, SwaggerDownload
from pilothouse.aggregator.server import RemoteApis
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge
from pilothouse.openapi.foreign import UnusableDocument, converted_swagger
from pilothouse.openapi.registry import OpenApi

REFRESH_SECONDS: Final = 60.0
_LIMIT: Final = 1 << 20


class RemoteOpenApi:
    """Keeps the addresses of documents in the index right."""

    def __init__(self, remotes: RemoteApis, proxy: AggregationProxy, openapi: OpenApi) -> None:
        self._remotes, self._proxy, self._openapi = remotes, proxy, openapi
        self._downloads: dict[GroupVersion, SwaggerDownload] = {}
        """Of servers that have no documents of version 3."""
        self.controller: Controller[GroupVersion] = Controller("OpenAPI v3 of remote APIs", self.reconcile)
        remotes.tell(self._changed)

    async def start(self, supervisor: Supervisor) -> None:
        """Ask those there are, then go on."""
        self.controller.start(supervisor)

    def _changed(self, gv: GroupVersion, remote: RemoteApi | None) -> None:
        if remote is None:
            self._openapi.set_address(gv, "")
            self._openapi.set_converted(gv, None)
            self._downloads.pop(gv, None)
        elif remote.is_available:
            self.controller.queue.add(gv)

    async def reconcile(self, gv: GroupVersion) -> float | None:
        """Ask one server; while it does not answer, what it said last stays."""
        remote = self._remotes.found.get(gv)
        if remote is None or not remote.is_available:
            return None
        if gv not in self._downloads:
            try:
                status, data, _ = await self._proxy.fetch(remote, "/openapi/v3", "", _LIMIT, user=OPENAPI_USER)
                if status != 404:
                    self._list(remote, await asyncio.to_thread(orjson.loads, data) if status == 200 else {})
                    return REFRESH_SECONDS
            except (OutgoingError, BodyTooLarge, TimeoutError, ValueError, LookupError, TypeError, AttributeError):
                return REFRESH_SECONDS
        return await self._convert(remote)

    def _list(self, remote: RemoteApi, index: dict[str, dict[str, dict[str, str]]]) -> None:
        found = (index["paths"].get(remote.path[1:]) or {}).get("serverRelativeURL", "")
        if isinstance(found, str) and (not found or found.startswith(f"/openapi/v3{remote.path}")):
            self._openapi.set_address(remote.group_version, found)
            (self._remotes.documented.add if found else self._remotes.documented.discard)(remote.group_version)

    async def _convert(self, remote: RemoteApi) -> float | None:
        gv = remote.group_version
        download = self._downloads.setdefault(gv, SwaggerDownload())
        try:
            data = await download.fetch(self._proxy, remote)
            if data is not None:
                converted = await asyncio.to_thread(converted_swagger, data, download.etag)
                if gv in self._downloads:
                    self._openapi.set_converted(gv, converted)
        except NoSwagger:
            return None
        except UnusableDocument as error:
            raise OutgoingError(f"the OpenAPI document of {remote.name} cannot be used: {error}") from None
        return REFRESH_SECONDS
