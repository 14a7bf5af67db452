"""Requests to a server under test, one connection each: for code that blocks, without any library."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

_CALL_SECONDS = 120.0


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
    """Somebody who talks to a server: by the certificate of the context, by a token, or as nobody."""

    url: str
    context: ssl.SSLContext
    token: str = ""

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request. A ``body`` that is neither bytes nor text is sent as JSON."""
        where = urlsplit(self.url)
        connection = HTTPSConnection(where.hostname or "", where.port, timeout=_CALL_SECONDS, context=self.context)
        sent = dict(headers or {})
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name in sent):
                sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        return Answer(answer.status, _joined(answer.getheaders()), data)


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
