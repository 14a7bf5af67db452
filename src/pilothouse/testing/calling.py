"""Requests to a server under test: for code that blocks, without any library."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pilothouse.testing.connections import Connections

_CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said. Header names are in lower case; repeated headers are joined by a comma."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who talks to a server: by the certificate of the context, by a token, or as nobody.

    Each request has a connection of its own, unless there are ``connections`` that somebody keeps and closes.
    """

    url: str
    context: ssl.SSLContext
    token: str = ""
    connections: Connections | None = None

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request. A ``body`` that is neither bytes nor text is sent as JSON."""
        sent = dict(headers or {})
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name in sent):
                sent["Content-Type"] = "application/json"
        connections = self.connections or connections_to(self.url, self.context)
        try:
            answer, data = connections.request(method, path, body, sent)
        finally:
            if self.connections is None:
                connections.close()
        return Answer(answer.status, _joined(answer.getheaders()), data)


def connections_to(url: str, context: ssl.SSLContext) -> Connections:
    """Connections that whoever asked for them closes."""
    where = urlsplit(url)
    return Connections(where.hostname or "", where.port or 443, context, _CALL_SECONDS)


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
