"""Every request has an id that its audit events and its answer carry: the client's own, or a new one."""

from __future__ import annotations

import random

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

_MAX_LENGTH = 64
_bits = random.Random().getrandbits


def new_audit_id() -> str:
    """A random version 4 UUID. It names a request, it protects nothing: ordinary randomness is enough."""
    digits = f"{_bits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def with_audit_id(following: Handler) -> Handler:
    """Give the request its id and echo it."""

    async def handle(request: APIRequest) -> Response:
        given = request.headers.get(b"audit-id")
        request.audit_id = given.decode("latin-1") if given else new_audit_id()
        response = await following(request)
        if response.upgrade is None:  # what takes the connection over says all there is to say
            response.headers.append((b"audit-id", request.audit_id[:_MAX_LENGTH].encode("latin-1")))
        return response

    return handle
