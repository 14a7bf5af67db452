"""A party that the server calls and that answers as it likes: a webhook, an issuer, or what is registered as one."""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson

from pilothouse.credentials.issuing import issue_serving
from pilothouse.credentials.pki import Pki

Answer = Callable[[Any], bytes]
"""What it says to what it was sent."""


class OutsideParty:
    """Serves HTTPS in threads of the attacker; what it says is said by ``answer``, which may be changed."""

    def __init__(self, pki: Pki, folder: Path, answer: Answer) -> None:
        self.answer = answer
        self.documents: dict[str, bytes] = {}
        """What it gives to those who ask, by path; an empty object of all else."""
        self.calls = 0
        cert, key = folder / "outside.crt", folder / "outside.key"
        issue_serving(pki, cert, key, ["localhost"], ["127.0.0.1"], time.time())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=True)
        self._http.daemon_threads = True
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._http.server_address[1]}"
        self.ca = base64.b64encode(pki.ca_cert.read_bytes()).decode()
        self.config = {"url": f"{self.url}/", "caBundle": self.ca}
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        party = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                party.calls += 1
                sent = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._say(party.answer(sent))

            def do_GET(self) -> None:
                party.calls += 1
                self._say(party.documents.get(self.path.partition("?")[0], b"{}"))

            def _say(self, body: bytes) -> None:
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler
