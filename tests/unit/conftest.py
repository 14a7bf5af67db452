"""Requests that no socket has seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.authn.user import User
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import resolve

Ask = Callable[..., APIRequest]


class Asked(APIRequest):
    """A request made of its parts."""

    __slots__ = ("sent",)

    def __init__(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> None:
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.headers = {name.lower().encode(): value.encode() for name, value in headers.items()}
        self.sent = body
        self.warnings = self.audit = self._query = None
        self.authentication_seconds = 0.0
        self.credential_notes = ()
        self.user = User("admin")
        self.info = resolve(method, self.path, Query(self.query))

    async def body(self, limit: int = 0) -> bytes:
        return self.sent


@pytest.fixture
def ask() -> Ask:
    """``ask(method, target, body, accept=…)`` makes a request."""

    def make(method: str = "GET", target: str = "/api/v1/pods", body: bytes = b"", **headers: str) -> APIRequest:
        return Asked(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})

    return make
