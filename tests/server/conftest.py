"""Peers and servers for tests of who may do what.

A peer is a small TLS server that answers with what a function makes of the request, and remembers what it got.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pilothouse.credentials.pki import ensure_pki

Answer = Callable[[str, Any], tuple[int, Any]]


@dataclass
class Peer:
    """A running server. ``answer`` gets the path and the decoded body and gives a status and an object."""

    url: str
    authority: Path
    answer: Answer
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None

    def kubeconfig(self, path: Path, suffix: str = "/") -> Path:
        """A kubeconfig that leads here."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [
                {"name": "x", "cluster": {"server": self.url + suffix, "certificate-authority": str(self.authority)}}
            ],
            "users": [{"name": "x", "user": {"token": "the-caller"}}],
        }
        path.write_bytes(orjson.dumps(document))
        return path

    def stop(self) -> None:
        assert self.server is not None
        self.server.shutdown()
        self.server.server_close()


def serve_peer(folder: Path, answer: Answer) -> Peer:
    """Serve on a free port of the loopback address until stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    cert, key = make_certificate(folder)
    peer = Peer("", cert, answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            self._serve(orjson.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _serve(self, body: Any) -> None:
            peer.requests.append((self.path, body))
            peer.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, answered = peer.answer(self.path, body)
            data = orjson.dumps(answered)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    peer.server, peer.url = server, f"https://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return peer


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "peer.crt", folder / "peer.key"
    cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_path, key_path


@pytest.fixture
def start_peer(tmp_path: Path) -> Iterator[Callable[[Answer], Peer]]:
    """Starts peers; they end with the test."""
    running: list[Peer] = []

    def start(answer: Answer) -> Peer:
        running.append(serve_peer(tmp_path / f"peer{len(running)}", answer))
        return running[-1]

    yield start
    for peer in running:
        peer.stop()


@pytest.fixture
def secured(tmp_path: Path) -> tuple[Path, list[str]]:
    """A data folder with certificates, and flags that let its administrator in whatever else authenticates."""
    data = tmp_path / "data"
    ensure_pki(data, dns_names=("localhost",), ip_addresses=("127.0.0.1",))
    return data, ["--client-ca-file", str(data / "pki" / "ca.crt"), "--authorization-mode", "RBAC"]
