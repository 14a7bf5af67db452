"""What endpoints and filters may tell the audit log about a request. Who writes it down lives above this layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pilothouse.machinery.user import User


class AuditEvent(Protocol):
    """The record of one request, which is filled on its way. There is none where nothing is to be written."""

    annotations: dict[str, str]
    times: dict[str, float]
    """What the layers of the server took, in seconds."""
    status: dict[str, Any] | None
    """The Status that refused the request, if one did."""

    @property
    def wants_request(self) -> bool:
        """Whether the request's object is to be written down whole."""
        ...

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation; the first value of a key stays."""
        ...

    def note_impersonation(self, user: User, constraint: str) -> None:
        """The request goes on as somebody else."""
        ...

    def note_object(self, obj: Mapping[str, Any]) -> None:
        """The object that the request carries, decoded and defaulted."""
        ...

    def note_patch(self, patch: bytes) -> None:
        """The patch that the request carries, as sent."""
        ...

    def overlook_answer(self) -> None:
        """The answer is in a form that the client did not ask for: only its code is written down."""
        ...
