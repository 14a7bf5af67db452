"""Connections that are kept from one request to the next: a handshake takes some ten times as long as a small request.

There are as many as threads that ask at once. One that the server has closed meanwhile is replaced before it is used,
so no request is ever sent twice.
"""

from __future__ import annotations

import select
import ssl
from collections import deque
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.client import HTTPResponse, HTTPSConnection


class Connections:
    """Those to one server, by whoever the context is a certificate of. To be closed."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, timeout: float) -> None:
        self._connect = partial(HTTPSConnection, host, port, timeout=timeout, context=context)
        self._idle = deque[HTTPSConnection]()

    def request(
        self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        """One request: the answer, and its body."""
        connection = self._take()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except BaseException:
            connection.close()
            raise
        if answer.status == HTTPStatus.SWITCHING_PROTOCOLS:
            connection.close()
        else:
            self._idle.append(connection)
        return answer, data

    def close(self) -> None:
        """Close those that nobody uses; more can be made afterwards."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> HTTPSConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if _is_open(connection):
                return connection
            connection.close()


def _is_open(connection: HTTPSConnection) -> bool:
    """Whether the server has said nothing since its last answer: all that it could say is that it has hung up."""
    if connection.sock is None:
        return False
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return not waiting.poll(0)
