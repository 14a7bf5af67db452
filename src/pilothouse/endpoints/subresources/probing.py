"""Asking another server over HTTPS whether it is well, without caring who vouches for its certificate."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Final

from pilothouse.endpoints.subresources.dialing import DialError, dial

_SECONDS: Final = 20.0
_BODY_LIMIT: Final = 10 * 1024


@cache
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def probe_health(host: str, port: int) -> tuple[bool, str]:
    """(healthy, what it said or why it could not be asked)."""
    url = f"https://{host}:{port}/healthz"
    try:
        reader, writer = await dial(host, port, _context(), _SECONDS)
    except DialError as error:
        return False, f'Get "{url}": {error}'
    try:
        async with asyncio.timeout(_SECONDS):
            request = (
                f"GET /healthz HTTP/1.0\r\nHost: {host}:{port}\r\nUser-Agent: kube-probe/1.37\r\nAccept: */*\r\n\r\n"
            )
            writer.write(request.encode())
            await writer.drain()
            answer = await reader.read(_BODY_LIMIT)
    except (OSError, TimeoutError) as error:
        return False, f'Get "{url}": {error}'
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    code = head.split(b" ", 2)[1:2]
    if code and code[0].isdigit() and 200 <= int(code[0]) < 400:
        return True, body.decode("utf-8", "replace")
    return False, f"HTTP probe failed with statuscode: {code[0].decode() if code else 0}"
