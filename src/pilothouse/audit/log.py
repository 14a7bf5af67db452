"""The audit log: one line an event, in a file or on standard output.

In the blocking modes the line is handed to the system before the request goes on, which is what these modes promise;
that is one write into the page cache. In batch mode whole batches are written by a thread.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

import orjson

from pilothouse.audit.events import Record
from pilothouse.audit.sinks import Lose, lose_silently
from pilothouse.machinery.go_quote import quote

logger = logging.getLogger(__name__)
_LONG: Final = 64 * 1024


class Writer(Protocol):
    """Takes bytes."""

    def write(self, data: bytes) -> None:
        """Append. Raises ``OSError``."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


class StandardOutput:
    """For ``--audit-log-path=-``."""

    def write(self, data: bytes) -> None:
        """Print."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Nothing to close."""


class LogSink:
    """Writes records as lines. ``threaded`` keeps the writing off the event loop, as it is with long ones anyway."""

    def __init__(
        self, writer: Writer, format: str = "json", *, threaded: bool = False, lose: Lose = lose_silently
    ) -> None:
        self._writer, self._legacy, self._threaded, self._lose = writer, format == "legacy", threaded, lose

    async def process(self, records: Sequence[Record]) -> bool:
        """Write them; False if the file does not take them."""
        try:
            if self._threaded or sum(record.size for record in records) > _LONG:
                await asyncio.to_thread(self._write_all, records)
            else:
                for record in records:
                    self._writer.write(self._line(record))
        except OSError as error:
            logger.error("%d audit events cannot be written: %s", len(records), error)
            self._lose("log", len(records))
            return False
        return True

    def _write_all(self, records: Sequence[Record]) -> None:
        self._writer.write(b"".join(map(self._line, records)))

    def _line(self, record: Record) -> bytes:
        return _legacy_line(record) if self._legacy else record.line

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._writer.close)


def _legacy_line(record: Record) -> bytes:
    event = orjson.loads(record.body)
    user, acting = event.get("user") or {}, event.get("impersonatedUser")
    groups = _listed(user.get("groups")) if user.get("username") and user.get("groups") else "<none>"
    acting_groups = _listed(acting["groups"]) if acting and acting.get("groups") else "<lookup>"
    code = (event.get("responseStatus") or {}).get("code")
    fields = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": (event.get("sourceIPs") or ["<unknown>"])[0],
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": groups,
        "as": acting.get("username", "") if acting else "<self>",
        "asgroups": acting_groups,
        "user-agent": event.get("userAgent", ""),
        "namespace": (event.get("objectRef") or {}).get("namespace") or "<none>",
        "uri": event["requestURI"],
    }
    shown = " ".join(f"{key}={quote(value)}" for key, value in fields.items())
    response = "<deferred>" if code is None else str(code)
    return f'{event["requestReceivedTimestamp"]} AUDIT: {shown} response="{response}"\n'.encode()


def _listed(groups: Any) -> str:
    return ",".join(quote(group) for group in groups or ())
