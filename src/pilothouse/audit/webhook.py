"""Audit events sent to a webhook as an ``EventList``, tried again with growing pauses whatever went wrong."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pilothouse.audit.events import Record
from pilothouse.audit.sinks import Lose, lose_silently

logger = logging.getLogger(__name__)
ATTEMPTS: Final = 5
FACTOR: Final = 1.5
JITTER: Final = 0.2
_HEAD: Final = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['

Send = Callable[[bytes], Awaitable[None]]
"""Sends a body. Raises ``SendFailed``."""


class SendFailed(Exception):
    """The webhook did not take the events."""


class WebhookSink:
    """Sends records."""

    def __init__(
        self,
        send: Send,
        first_delay: float = 10.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        lose: Lose = lose_silently,
    ) -> None:
        self._lose = lose
        self._send, self._first_delay, self._sleep, self._jitter = send, first_delay, sleep, jitter

    async def process(self, records: Sequence[Record]) -> bool:
        """Send them in one request; False after the last attempt."""
        body = _HEAD + b",".join(record.body for record in records) + b"]}\n"
        for attempt in range(ATTEMPTS):
            try:
                await self._send(body)
            except SendFailed as failure:
                if attempt == ATTEMPTS - 1:
                    logger.error("%d audit events cannot be sent: %s", len(records), failure)
                    self._lose("webhook", len(records))
                    break
                await self._sleep(self._first_delay * FACTOR**attempt * (1 + JITTER * self._jitter()))
            else:
                return True
        return False

    async def close(self) -> None:
        """Nothing to close: connections belong to the sender."""
