"""Calls to the webhooks of authentication and authorization: one JSON object there, one back, with retries.

The HTTP client is injected: ``Post`` sends the object to the URL of the kubeconfig and returns the decoded answer, or
raises WebhookFailed and says whether trying again may help (connection reset, 429, 500, 504 and the like).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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
    """Send and wait for the answer, up to five times with growing pauses. Raises WebhookFailed."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await post(body)
        except WebhookFailed as failure:
            if not failure.retry:
                raise
        await sleep(FIRST_DELAY * FACTOR**attempt * (1 + JITTER * jitter()))
    return await post(body)
