"""The beginning of a TLS connection that we make; what follows is the same as for those that come in."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final

from pilothouse.net.dialing.refusals import refuse
from pilothouse.net.tls_transport import Session

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
    except ssl.SSLError as error:
        with suppress(OSError):
            session.answer()  # the alert
        if isinstance(error, ssl.SSLCertVerificationError):
            raise refuse(error, session.tls) from None
        raise
    return True
