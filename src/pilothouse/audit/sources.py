"""The addresses a request came from: what proxies say about it, then the peer itself, which cannot be made up."""

from __future__ import annotations

import ipaddress

from pilothouse.net.header_lists import list_tokens
from pilothouse.net.messages import Request


def source_addresses(request: Request) -> list[str]:
    """All addresses in the order of the way here. Texts that are no addresses are left out."""
    # A socket for both families shows addresses of the older one inside of the newer.
    peer = request.connection.peer[0].removeprefix("::ffff:")
    headers = request.headers
    if b"x-forwarded-for" not in headers and b"x-real-ip" not in headers:
        return [peer] if peer else []
    found = [ip for part in list_tokens([headers.get(b"x-forwarded-for", b"")]) if (ip := _address(part))]
    real = _address(headers.get(b"x-real-ip", b""))
    if real and real not in found:
        found.append(real)
    if peer and (not found or found[-1] != peer):
        found.append(peer)
    return found


def _address(text: bytes) -> str:
    try:
        found = ipaddress.ip_address(text.decode("ascii").strip())
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if found.version == 6 else None
    return str(mapped or found)
