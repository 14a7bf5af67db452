"""A request on its way through the server: the HTTP request plus what the filters found out about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from pilothouse.endpoints.audit_event import AuditEvent
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.disposal import dispose
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_manager import FieldsOfNew
from pilothouse.machinery.schema.raw import Writing
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import afterwards
from pilothouse.net.messages import DEFAULT_BODY_LIMIT, Request
from pilothouse.storage.backends.contract import Foreseen


class Refusal(NamedTuple):
    """Why the user may not, and what to answer."""

    error: StatusError
    reason: str


class Seat(Protocol):
    """A share of the server that is to be given back."""

    def release(self) -> None:
        """Give it back. Doing so again does nothing."""


Unseated = Callable[[Awaitable[bytes]], Awaitable[bytes]]
"""Waits without the seat of its request, which has one again afterwards."""
Ask = Callable[["APIRequest", str], Awaitable[Refusal | None]]
"""Whether the user of a request may also do something else (a verb) to the same object; None if so."""


class APIRequest(Request):
    """Filled from the outside in: audit id, request info, user, then whatever the endpoint adds."""

    __slots__ = (
        "_query", "ask", "audit", "audit_id", "authentication_seconds", "authorized_by", "credential_notes",
        "filter_began", "foreseen", "info", "is_private", "known", "made", "queued_seconds", "raw", "received",
        "removed_release", "seat", "unseated", "user", "warnings", "watch_seconds", "weight",
    )  # fmt: skip

    audit_id: str
    info: RequestInfo
    user: User
    received: float
    filter_began: float
    authorized_by: str

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._query: Query | None = None
        self.is_private = False
        """Whether the answer is to say that it must not be cached."""
        self.warnings: dict[str, None] | None = None
        self.watch_seconds = 1800
        """How long a watch lasts at least when the client does not say."""
        self.ask: Ask | None = None
        """Puts further questions to the authorizer."""
        self.audit: AuditEvent | None = None
        """What is written down about this request; None where nothing is."""
        self.raw: Writing | None = None
        """How raw JSON values of the body are written; None where its kind has none."""
        self.known: FieldsOfNew | None = None
        """What is known of the body, because it came before."""
        self.weight = 0
        """How long the body is: what is made of a long one is made aside; see ``machinery.workers``."""
        self.made: list[Any] | None = None
        """The very large objects that were made for this request: they are freed aside when it is answered."""
        self.seat: Seat | None = None
        """What flow control gave this request; whoever serves it beyond the answer's head may take it over."""
        self.unseated: Unseated | None = None
        """How to wait for a body without a seat; None where there is no need to."""
        self.removed_release: str | None = None
        """Of a deprecated API: the release that has it no more, where that is known."""
        self.authentication_seconds = 0.0
        self.queued_seconds = 0.0
        self.foreseen: Foreseen | None = None
        """Where the store stands, asked ahead for what will want to know."""
        self.credential_notes: tuple[tuple[str, str], ...] = ()
        """What authentication has to say for the audit log."""

    def recall(self, info: RequestInfo) -> None:
        """Take over how a request that says the same was read."""
        self.info, self._query = info, info.options

    @property
    def options(self) -> Query:
        """The parsed query string."""
        query = self._query
        if query is None:
            query = self._query = Query(self.query)
        return query

    async def body(self, limit: int = DEFAULT_BODY_LIMIT) -> bytes:
        """The whole body. Raises BodyTooLarge, MalformedBody, ClientDisconnected, and StatusError where that is 429."""
        body = self._body
        if body is None:
            return b""
        if self.unseated is None or body.complete:
            return await body.read(limit)
        return await self.unseated(body.read(limit))

    @property
    def lacks_body(self) -> bool:
        """Whether more of its body is to come."""
        return self._body is not None and not self._body.complete

    def note_made(self, *objects: Any) -> None:
        """Say that these objects are very large, and nobody else's. Those of an attempt before are freed now.

        A write may lose many races, and would hold what it made for each of them.
        """
        if self.made is not None:
            afterwards(dispose, self.made)
        self.made = [*objects]

    def warn(self, message: str) -> None:
        """Add a Warning header to the answer."""
        if self.warnings is None:
            self.warnings = {}
        self.warnings[message] = None
