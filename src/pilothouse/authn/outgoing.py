"""HTTPS from this server to the services it asks: webhooks take an object and give one back, issuers give documents.

One session is shared by all and made when first used. Redirects are not followed, answers are bounded, and errors name
the URL but never what was sent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from pilothouse.authn.oidc import Fetch, FetchFailed
from pilothouse.authn.webhook_calls import Post, WebhookFailed
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint, client_context
from pilothouse.net.eager import ensure_task

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER: Final = 4 * 1024 * 1024
FETCH_SECONDS: Final = 30.0
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})


class OutgoingCalls:
    """Makes the callables that authentication, authorization and audit are given. ``close`` ends its connections."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close idle and busy connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def post_to(self, endpoint: WebhookEndpoint, seconds: float) -> Post:
        """Sends an object to a webhook and returns its answer."""
        send = self.sender_to(endpoint, seconds)

        async def post(body: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                answer = orjson.loads(await send(orjson.dumps(body)))
            except orjson.JSONDecodeError as error:
                raise WebhookFailed(f"the webhook's answer is not JSON: {error}") from None
            if not isinstance(answer, dict):
                raise WebhookFailed("the webhook's answer is not an object")
            return answer

        return post

    def sender_to(self, endpoint: WebhookEndpoint, seconds: float) -> Callable[[bytes], Awaitable[bytes]]:
        """Sends bytes of JSON to a webhook and returns those of its answer. Raises ``WebhookFailed``."""
        context = endpoint.tls()

        async def send(body: bytes) -> bytes:
            status, data = await self._send(endpoint, context, body, seconds)
            if not 200 <= status <= 299:
                raise WebhookFailed(_describe_failure(status, data), retry=status in _RETRIED)
            return data

        return send

    def fetch_for(self, authority: str) -> Fetch:
        """Gets documents by HTTPS from servers that an authority (PEM) vouches for."""
        context = client_context(authority)

        async def fetch(url: str) -> bytes:
            import aiohttp

            await ensure_task()
            try:
                timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
                async with self._shared().get(url, ssl=context, timeout=timeout, allow_redirects=False) as response:
                    data = await _read(response)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise FetchFailed(f'Get "{url}": {_describe(error)}') from None
            if response.status != 200:
                raise FetchFailed(f"{response.status} {response.reason}")
            return data

        return fetch

    async def _send(
        self, endpoint: WebhookEndpoint, context: ssl.SSLContext, body: bytes, seconds: float
    ) -> tuple[int, bytes]:
        import aiohttp

        await ensure_task()
        headers = {"content-type": "application/json", "accept": "application/json", **endpoint.headers}
        try:
            authorization = (
                await asyncio.to_thread(endpoint.authorization) if endpoint.token_file else (endpoint.authorization())
            )
            if authorization:
                headers["authorization"] = authorization
            async with self._shared().post(
                endpoint.url,
                data=body,
                headers=headers,
                ssl=context,
                server_hostname=endpoint.server_name or None,
                timeout=aiohttp.ClientTimeout(total=seconds or None),
                allow_redirects=False,
            ) as response:
                return response.status, await _read(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            again = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | TimeoutError)
            raise WebhookFailed(f'Post "{endpoint.url}": {_describe(error)}', retry=again) from None

    def _shared(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers={"user-agent": "kube-apiserver"}
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = await response.content.read(MAX_ANSWER + 1)
    while len(data) <= MAX_ANSWER:
        piece = await response.content.read(MAX_ANSWER + 1 - len(data))
        if not piece:
            return data
        data += piece
    raise OSError("the answer is too large")


def _describe(error: BaseException) -> str:
    return "context deadline exceeded" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def _describe_failure(status: int, data: bytes) -> str:
    """What the webhook said about its refusal: the message of a Status, or what a client makes of a bare code."""
    try:
        answer = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("message"):
        return str(answer["message"])
    if status >= 500:
        said = data[:200].decode("utf-8", "replace")
        return f'an error on the server ("{said}") has prevented the request from succeeding'
    return f"the server rejected our request for an unknown reason ({status})"
