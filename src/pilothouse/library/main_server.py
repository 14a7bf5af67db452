"""The main API server: what it knows can be read, and what it decides can be asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import orjson

from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.webhook_calls import Post
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.net.dialing import Dialer
from pilothouse.net.outgoing import OutgoingError
from pilothouse.registry.rest_client import RestClient

_SECONDS: Final = 30.0
_MAX_ANSWER: Final = 256 * 1024 * 1024
_PAGE: Final = 500
Items = list[Object]


class Main:
    """A client of the main API server, with the rights of this server's own account."""

    def __init__(self, endpoint: WebhookEndpoint, dialer: Dialer | None = None, agent: str = "pilothouse") -> None:
        self._endpoint = replace(endpoint, url=endpoint.url.rstrip("/"))
        self._client = RestClient(agent=agent, dialer=dialer)

    async def get(self, path: str) -> Object:
        """The object or list at a path. Raises ``StatusError``: the API server's own, or a 503 if there is none."""
        url = self._endpoint.url + path
        try:
            headers = await self._headers()
            answer = await self._client.get(
                url, tls=self._endpoint.tls, headers=headers, seconds=_SECONDS, limit=_MAX_ANSWER
            )
            return _content(answer.status, answer.body)
        except (OSError, OutgoingError, orjson.JSONDecodeError) as error:
            raise StatusError(503, "ServiceUnavailable", f"the main API server does not answer: {error}") from None

    async def list(self, path: str) -> Items:
        """All items of a list, page by page."""
        return (await self.snapshot(path))[0]

    async def snapshot(self, path: str) -> tuple[Items, str]:
        """All items of a list, and the version from which a watch goes on."""
        items: Items = []
        token = version = ""
        while True:
            mark = "&" if "?" in path else "?"
            page = await self.get(f"{path}{mark}limit={_PAGE}" + (f"&continue={token}" if token else ""))
            items += page.get("items") or ()
            metadata = page.get("metadata") or {}
            token, version = str(metadata.get("continue") or ""), str(metadata.get("resourceVersion", version))
            if not token:
                return items, version

    async def watch(self, path: str) -> AsyncIterator[Object]:
        """The events of a watch until it ends. Raises ``StatusError`` and OutgoingError."""
        url = self._endpoint.url + path
        reply = await self._client.open(url, tls=self._endpoint.tls, headers=await self._headers())
        try:
            if reply.status != 200:
                _content(reply.status, await reply.read(_MAX_ANSWER))
            rest = b""
            async for piece in reply.pieces():
                *lines, rest = (rest + piece).split(b"\n")
                for line in filter(None, lines):
                    yield orjson.loads(line)
        finally:
            await reply.close()

    async def _headers(self) -> dict[str, str]:
        shown = await asyncio.to_thread(self._endpoint.authorization)
        return {"accept": "application/json", **({"authorization": shown} if shown else {})}

    def poster(self, outgoing: OutgoingCalls, path: str, seconds: float = _SECONDS) -> Post:
        """Sends reviews to a path."""
        return outgoing.post_to(replace(self._endpoint, url=self._endpoint.url + path), seconds)

    async def close(self) -> None:
        """End all connections."""
        await self._client.close()


def _content(status: int, body: bytes) -> Object:
    found: Any = orjson.loads(body)
    if status != 200:
        reason, message = str(found.get("reason", "")), str(found.get("message", ""))
        raise StatusError(status, reason, message, found.get("details") or {})
    return dict(found)
