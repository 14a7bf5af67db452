"""Asking another server over HTTPS whether it is well, without caring who vouches for its certificate."""

from __future__ import annotations

from typing import Final

from pilothouse.net.dialing import OutgoingError, Tls
from pilothouse.net.outgoing import OutgoingClient

_SECONDS: Final = 20.0
_BODY_LIMIT: Final = 10 * 1024


async def probe_health(host: str, port: int) -> tuple[bool, str]:
    """(healthy, what it said or why it could not be asked)."""
    client = OutgoingClient(agent="kube-probe/1.37")
    url = f"https://{host}:{port}/healthz"
    try:
        answer = await client.get(
            url, tls=Tls(insecure=True), headers={"Accept": "*/*"}, seconds=_SECONDS, limit=_BODY_LIMIT
        )
    except OutgoingError as error:
        return False, str(error)
    finally:
        await client.close()
    if 200 <= answer.status < 400:
        return True, answer.body.decode("utf-8", "replace")
    return False, f"HTTP probe failed with statuscode: {answer.status}"
