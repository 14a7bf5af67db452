"""TLS connections that we begin: the same short way between socket and protocol as for those that come in."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Any, Final, cast

from pilothouse.net.tls_transport import Session, TlsTransport

_READ: Final = 64 * 1024


async def shake_hands(sock: socket.socket, context: ssl.SSLContext, server_name: str) -> Session:
    """Begin to speak TLS on a connected socket, which is closed where that fails. Raises OSError and ValueError."""
    loop = asyncio.get_running_loop()
    try:
        session = Session(sock, context, server_name)
        while not _is_done(session):
            await loop.sock_sendall(sock, session.outgoing.read())
            data = await loop.sock_recv(sock, _READ)
            if not data:
                raise EOFError("EOF")
            session.incoming.write(data)
        if session.outgoing.pending:
            await loop.sock_sendall(sock, session.outgoing.read())
    except BaseException:
        sock.close()
        raise
    return session


def _is_done(session: Session) -> bool:
    try:
        session.tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        with suppress(OSError):
            session.answer()  # the alert
        raise
    return True


class ClientTlsTransport(TlsTransport):
    """An established connection to another server, whose protocol gets bytes and may be replaced by another."""

    __slots__ = ()

    def __init__(self, loop: asyncio.AbstractEventLoop, session: Session, protocol: asyncio.Protocol) -> None:
        super().__init__(loop, session, cast(Any, protocol))

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(Any, protocol)

    def _deliver(self) -> bool:
        return self._fill(self._scratch, self._hand_over)

    def _hand_over(self, count: int) -> None:
        cast(asyncio.Protocol, self._protocol).data_received(self._scratch[:count].tobytes())
