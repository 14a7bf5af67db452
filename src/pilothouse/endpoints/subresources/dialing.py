"""Opening connections to other machines' servers, with failures told as Go tells them."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from typing import Final

from pilothouse.net.eager import ensure_task

_WORDS: Final = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.ETIMEDOUT: "connect: connection timed out",
    errno.ECONNRESET: "connect: connection reset by peer",
}


class DialError(OSError):
    """A connection that could not be made; its text is what the original shows."""


async def dial(
    host: str, port: int, context: ssl.SSLContext | None, seconds: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, with TLS if a context is given. Raises ``DialError``."""
    await ensure_task()
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.open_connection(host, port, ssl=context)
    except TimeoutError:
        raise DialError(f"dial tcp {target}: i/o timeout") from None
    except ssl.SSLError as error:
        raise DialError(f"tls: {error.reason or error}") from None
    except OSError as error:
        words = _WORDS.get(error.errno or 0) or f"connect: {os.strerror(error.errno or 0).lower()}"
        raise DialError(f"dial tcp {target}: {words}") from None
