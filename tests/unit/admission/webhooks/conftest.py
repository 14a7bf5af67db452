"""Webhook servers over TLS, in the test's own loop."""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[dict[str, Any]], Any]
"""From a review to the response in it, or to a web response of one's own."""


@dataclass
class HookServer:
    """A server that records reviews and answers as told."""

    url: str
    port: int
    authority: str
    """Base64, as ``caBundle`` has it."""
    reviews: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        review = orjson.loads(await request.read())
        review["path"] = str(request.rel_url)
        review["headers"] = dict(request.headers)
        self.reviews.append(review)
        answer = self.answers.get(request.path, lambda review: {"allowed": True})(review)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, web.StreamResponse):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        body = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}
        return web.json_response(body)


def make_certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A certificate that vouches for itself, for 127.0.0.1 and these names."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    now = datetime.now(UTC)
    alternatives = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *(x509.DNSName(each) for each in names)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "hook.crt", folder / "hook.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    no_password = serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password))
    return paths


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[HookServer]:
    cert, key = make_certificate(tmp_path, "hook.ns.svc", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    made = HookServer("", 0, base64.b64encode(cert.read_bytes()).decode())
    app = web.Application()
    app.router.add_post("/{tail:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    made.url = f"https://127.0.0.1:{made.port}"
    yield made
    await runner.cleanup()
