"""Calls to the webhooks of authentication and authorization: one JSON object there, one back, with retries.

The HTTP client is injected: ``Post`` sends the object to the URL of the kubeconfig and returns the decoded answer, or
raises WebhookFailed and says whether trying again may help (connection reset, 429, 500, 504 and the like).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.decoding import DecodeError, decode

Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
Sleep = Callable[[float], Awaitable[object]]

ATTEMPTS = 5
FIRST_DELAY = 0.5
FACTOR = 1.5
JITTER = 0.2


class WebhookFailed(Exception):
    """The webhook gave no usable answer."""

    def __init__(self, message: str, *, retry: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.retry, self.timed_out = retry, timed_out


async def call(
    post: Post,
    body: Mapping[str, Any],
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> Mapping[str, Any]:
    """Send and wait for the status of the answer, up to five times with growing pauses. Raises WebhookFailed."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return read_status(await post(body), body)
        except WebhookFailed as failure:
            if not failure.retry:
                raise
        await sleep(FIRST_DELAY * FACTOR**attempt * (1 + JITTER * jitter()))
    return read_status(await post(body), body)


def read_status(answer: Mapping[str, Any], question: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an answer, every field of the type it should have. Raises WebhookFailed.

    A text where a boolean belongs must not count as a yes.
    """
    from pilothouse.apis import types

    kind, version = question["kind"], question["apiVersion"]
    if answer.get("kind", kind) != kind or answer.get("apiVersion", version) != version:
        raise WebhookFailed(
            f"the webhook's answer is a {answer.get('kind')} of {answer.get('apiVersion')}, not a {kind} of {version}"
        )
    # The beta versions look the same.
    group, _, own = version.partition("/")
    struct = types.find_kind(GroupVersionKind(group, "v1", kind)) or types.find_kind(GroupVersionKind(group, own, kind))
    assert struct is not None
    try:
        decoded, _ = decode(struct, {"status": answer.get("status")})
    except DecodeError as error:
        raise WebhookFailed(f"the webhook's answer cannot be used: {error}") from None
    status: Mapping[str, Any] = decoded.get("status") or {}
    return status
