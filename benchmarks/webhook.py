"""A webhook that allows everything at once: ``webhook.py PORT CERT KEY``."""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from typing import cast

import uvloop

_UID = re.compile(rb'"uid":"([^"]+)"')
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"%b","allowed":true}}'


class Allowing(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self._input = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self._input += data
        while b"\r\n\r\n" in self._input:
            head, _, rest = self._input.partition(b"\r\n\r\n")
            found = _LENGTH.search(head)
            length = int(found[1]) if found else 0
            if len(rest) < length:
                return
            uid = _UID.search(rest, 0, length)  # the request's own uid comes first
            answer = _ANSWER % (uid[1] if uid else b"")
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(answer), answer)
            )
            self._input = rest[length:]


async def serve(port: int, cert: str, key: str) -> None:
    """Serve until killed."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    listening = await asyncio.get_running_loop().create_server(Allowing, "127.0.0.1", port, ssl=tls)
    await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), *sys.argv[2:4]))
