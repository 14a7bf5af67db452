"""From this server to the services it asks: webhooks take an object and give one back, issuers give documents.

Made of the server's HTTP client; here are the callables that authentication, authorization and audit are given, and
the words for answers that are refusals. Errors name the URL but never what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson

from pilothouse.authn.issuer_documents import Fetch, FetchFailed
from pilothouse.authn.webhook_calls import Post, WebhookFailed
from pilothouse.authn.webhook_kubeconfig import WebhookEndpoint
from pilothouse.net.dialing import Dialer
from pilothouse.net.outgoing import OutgoingError, Tls
from pilothouse.registry.rest_client import RestClient

_MAX_ANSWER: Final = 4 * 1024 * 1024
_MAX_REVIEW: Final = 1024 * 1024
"""Of webhooks: a user of thirty thousand groups, which can still be read in a few milliseconds."""
_FETCH_SECONDS: Final = 30.0
_RETRIED: Final = frozenset({429, 500, 504})
# A webhook that nobody serves is not asked again: the request would only wait. One that broke off is; an end of file
# may also be a connection kept for reuse that the other side had just given up.
_BROKEN_OFF: Final = ("connection reset by peer", "EOF")
Send = Callable[[bytes], Awaitable[bytes]]


class OutgoingCalls:
    """Makes the callables. ``close`` ends their connections."""

    def __init__(self, dialer: Dialer | None = None) -> None:
        self._client = RestClient(agent="kube-apiserver", dialer=dialer)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

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

    def sender_to(self, endpoint: WebhookEndpoint, seconds: float) -> Send:
        """Sends bytes of JSON to a webhook and returns those of its answer. Raises ``WebhookFailed``."""
        tls = endpoint.tls

        async def send(body: bytes) -> bytes:
            headers = {"content-type": "application/json", "accept": "application/json"}
            try:
                from_file = bool(endpoint.token_file)
                shown = await asyncio.to_thread(endpoint.authorization) if from_file else endpoint.authorization()
                if shown:
                    headers["authorization"] = shown
                answer = await self._client.post(
                    endpoint.url, body, tls=tls, headers=headers, seconds=seconds, limit=_MAX_REVIEW
                )
            except (OSError, OutgoingError) as error:
                late = isinstance(error, OutgoingError) and error.timed_out
                raise WebhookFailed(str(error), retry=str(error).endswith(_BROKEN_OFF), timed_out=late) from None
            if not 200 <= answer.status <= 299:
                raise WebhookFailed(
                    _describe_refusal(answer.status, answer.body),
                    retry=answer.status in _RETRIED or (answer.status >= 500 and "retry-after" in answer.headers),
                    timed_out=answer.status == 504,
                )
            return answer.body

        return send

    def fetch_for(self, authority: str) -> Fetch:
        """Gets documents by HTTPS from servers that an authority (PEM) vouches for."""
        tls = Tls(authority.encode())

        async def fetch(url: str) -> bytes:
            try:
                answer = await self._client.get(url, tls=tls, seconds=_FETCH_SECONDS, limit=_MAX_ANSWER)
            except OutgoingError as error:
                raise FetchFailed(str(error)) from None
            if answer.status != 200:
                raise FetchFailed(f"unexpected status {answer.status}")
            return answer.body

        return fetch


def _describe_refusal(status: int, data: bytes) -> str:
    """What the webhook said: the message of a Status, or what a client makes of a bare code."""
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
