"""The main API server: what it knows can be read, and what it decides can be asked for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import orjson

from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.webhook_calls import Post
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.net.dialing import Dialer
from pilothouse.net.outgoing import OutgoingClient, OutgoingError

_SECONDS: Final = 30.0
_MAX_ANSWER: Final = 256 * 1024 * 1024
_PAGE: Final = 500


class Main:
    """A client of the main API server, with the rights of this server's own account."""

    def __init__(self, endpoint: WebhookEndpoint, dialer: Dialer | None = None, agent: str = "pilothouse") -> None:
        self._endpoint = replace(endpoint, url=endpoint.url.rstrip("/"))
        self._client = OutgoingClient(agent=agent, dialer=dialer)

    async def get(self, path: str) -> Object:
        """The object or list at a path. Raises ``StatusError``: the API server's own, or a 503 if there is none."""
        headers = {"accept": "application/json"}
        try:
            shown = await asyncio.to_thread(self._endpoint.authorization)
            if shown:
                headers["authorization"] = shown
            url = self._endpoint.url + path
            answer = await self._client.get(
                url, tls=self._endpoint.tls, headers=headers, seconds=_SECONDS, limit=_MAX_ANSWER
            )
            found: Any = orjson.loads(answer.body)
        except (OSError, OutgoingError, orjson.JSONDecodeError) as error:
            raise StatusError(503, "ServiceUnavailable", f"the main API server does not answer: {error}") from None
        if answer.status != 200:
            reason, message = str(found.get("reason", "")), str(found.get("message", ""))
            raise StatusError(answer.status, reason, message, found.get("details") or {})
        return dict(found)

    async def list(self, path: str) -> list[Object]:
        """All items of a list, page by page."""
        items: list[Object] = []
        token = ""
        while True:
            mark = "&" if "?" in path else "?"
            page = await self.get(f"{path}{mark}limit={_PAGE}" + (f"&continue={token}" if token else ""))
            items += page.get("items") or ()
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return items

    def poster(self, outgoing: OutgoingCalls, path: str, seconds: float = _SECONDS) -> Post:
        """Sends reviews to a path."""
        return outgoing.post_to(replace(self._endpoint, url=self._endpoint.url + path), seconds)

    async def close(self) -> None:
        """End all connections."""
        await self._client.close()
