"""OpenAPI documents of version 2 that other servers have, merged into the one of this server.

Each server is asked every minute and whenever its APIService changes, with the ETag of what it sent last. What it said
last stays while it does not answer. A server without such a document is not asked again until its APIService changes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final, TypeVar

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.aggregator.remote_documents import REFRESH_SECONDS, RemoteDocuments
from pilothouse.aggregator.server import RemoteApis
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.user import User
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge
from pilothouse.openapi.foreign import Foreign, UnusableDocument, swagger_below
from pilothouse.openapi.registry import OpenApi

OPENAPI_USER: Final = User("system:aggregator")
_LIMIT: Final = 32 << 20
T = TypeVar("T")


class SwaggerDownload:
    """The document of one server, as it was sent last."""

    def __init__(self) -> None:
        self.etag = ""
        self._their_etag = ""

    async def refresh(
        self,
        proxy: AggregationProxy,
        remote: RemoteApi,
        read: Callable[[bytes, str], T],
        keep: Callable[[T], object],
    ) -> float | None:
        """Fetch the document; if it is another one, read it in a thread and keep what comes of it.

        After how many seconds to ask again; None for a server that has none. Raises OutgoingError.
        """
        try:
            data = await self.fetch(proxy, remote)
            if data is not None:
                keep(await asyncio.to_thread(read, data, self.etag))
        except NoSwagger:
            return None
        except UnusableDocument as error:
            raise OutgoingError(f"the OpenAPI document of {remote.name} cannot be used: {error}") from None
        return REFRESH_SECONDS

    async def fetch(self, proxy: AggregationProxy, remote: RemoteApi) -> bytes | None:
        """The document if it is another than the last one. Raises OutgoingError, also for an answer that is none."""
        try:
            found = await proxy.fetch(
                remote, "/openapi/v2", "application/json", _LIMIT, user=OPENAPI_USER, etag=self._their_etag
            )
        except (TimeoutError, BodyTooLarge) as error:
            raise OutgoingError(f"failed to retrieve openAPI spec: {error or 'request timed out'}") from None
        if found.status == 404:
            raise NoSwagger("the server has no OpenAPI document")
        if found.status == 304 and self._their_etag:
            return None
        if found.status != 200:
            raise OutgoingError(f"failed to retrieve openAPI spec, http error: {found.status}")
        etag = found.etag or await asyncio.to_thread(_hash, found.body)
        if etag == self.etag:
            return None
        self.etag, self._their_etag = etag, found.etag
        return found.body


class NoSwagger(OutgoingError):
    """A server that has no such document."""


class RemoteSwagger(RemoteDocuments):
    """Keeps the document of version 2 right."""

    def __init__(self, remotes: RemoteApis, proxy: AggregationProxy, openapi: OpenApi) -> None:
        super().__init__("OpenAPI v2 of remote APIs", remotes, proxy)
        self._openapi = openapi
        self._downloads: dict[GroupVersion, SwaggerDownload] = {}
        self._found: dict[GroupVersion, Foreign] = {}

    def forget(self, gv: GroupVersion) -> None:
        """Its document is part of ours no more."""
        self._downloads.pop(gv, None)
        self._found.pop(gv, None)
        self._merge()

    async def refresh(self, remote: RemoteApi) -> float | None:
        """Ask for the document, and merge what is below the group version."""
        gv = remote.group_version

        def read(data: bytes, etag: str) -> Foreign:
            return swagger_below(data, f"{remote.path}/", etag)

        def keep(found: Foreign) -> None:
            if gv in self.remotes.found:
                self._found[gv] = found
                self._merge()

        return await self._downloads.setdefault(gv, SwaggerDownload()).refresh(self.proxy, remote, read, keep)

    def _merge(self) -> None:
        """All documents, by the priority of their groups and then by name."""
        listed = [self.remotes.found[gv] for gv in self._found if gv in self.remotes.found]
        priorities: dict[str, int] = {}
        for remote in listed:
            group = remote.group_version.group
            priorities[group] = max(priorities.get(group, 0), remote.priority[0])
        listed.sort(key=lambda remote: (-priorities[remote.group_version.group], remote.name))
        self._openapi.merge(self._found[remote.group_version] for remote in listed)


def _hash(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()
