"""Every request has an id that its audit events and its answer carry: the client's own, or a new one."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.random_ids import new_uid


def audit_id_of(request: APIRequest) -> str:
    """The id that the client gave the request, or a new one."""
    given = request.headers.get(b"audit-id")
    return given.decode("latin-1") if given else new_uid()
