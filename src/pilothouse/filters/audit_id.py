"""Every request has an id that its audit events and its answer carry: the client's own, or a new one."""

from __future__ import annotations

import random

from pilothouse.endpoints.request import APIRequest

_bits = random.Random().getrandbits


def new_audit_id() -> str:
    """A random version 4 UUID. It names a request, it protects nothing: ordinary randomness is enough."""
    digits = f"{_bits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def audit_id_of(request: APIRequest) -> str:
    """The id that the client gave the request, or a new one."""
    given = request.headers.get(b"audit-id")
    return given.decode("latin-1") if given else new_audit_id()
