"""Much of what is allowed: watches, upgrades and dry runs by the hundred; certificates and names of any length."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{MAPS}?watch=1&timeoutSeconds=60"
CROWD = 200
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://localhost\r\n"
)


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


@contextmanager
def connected(victim: Any, context: ssl.SSLContext | None = None) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", victim.port), timeout=60) as plain,
        (context or victim.contexts[False]).wrap_socket(plain, server_hostname="127.0.0.1") as each,
    ):
        yield each


def head(path: str, more: str = "", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n".encode()


def descriptors(victim: Any) -> int:
    return len(os.listdir(f"/proc/{victim.server.process.pid}/fd"))


def await_descriptors(victim: Any, most: int) -> None:
    deadline = time.monotonic() + 120
    while descriptors(victim) > most:
        assert time.monotonic() < deadline, "connections of those who left are kept"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("watches", head(WATCH)),
        ("websockets", head(WATCH, UPGRADE)),
        ("upgrades to nothing", head(f"{MAPS}/none", UPGRADE)),
        ("executions", head("/api/v1/namespaces/default/pods/none/exec?command=a&stdout=1", UPGRADE, "POST")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_opened_and_dropped(victim: Any, what: str, said: bytes) -> None:
    """All in one moment, so that one turn of the loop serves all of them; what was opened for them goes with them."""
    before = descriptors(victim)
    with victim.attacked(f"{CROWD} {what} opened and dropped", allowance=48 << 20):
        with ExitStack() as stack:
            opened = [stack.enter_context(connected(victim)) for _ in range(CROWD)]
            for each in opened:
                each.sendall(said)
            for each in opened:
                assert each.recv(9) == b"HTTP/1.1 "
        await_descriptors(victim, before + 20)


@pytest.mark.parametrize(
    "frame",
    [
        b"\x82\xff" + struct.pack(">Q", 1 << 62) + b"mask",
        b"\x89\x80mask" * 20_000,
        b"\x02\x80mask" * 20_000,
        b"\x88\x80mask" * 1_000,
    ],
    ids=["endless", "pings", "fragments", "goodbyes"],
)
def test_websocket_frames(victim: Any, frame: bytes) -> None:
    with victim.attacked(f"websocket frames {frame[:2].hex()}"):
        for _ in range(5):
            with connected(victim) as each, suppress(OSError):
                each.sendall(head(WATCH, UPGRADE))
                assert each.recv(12) == b"HTTP/1.1 101"
                each.sendall(frame)


def certificate(victim: Any, subject: x509.Name, names: list[str], *, known: bool) -> ssl.SSLContext:
    """What a client shows: signed by the server's authority, or by nobody it knows."""
    pki = victim.server.data / "pki"
    authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None) if known else key
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(authority.subject if known else subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    made = builder.sign(signer, hashes.SHA256())
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
        context.load_cert_chain(file.name)
    return context


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("what", "groups", "names"),
    [("2,000 groups", 2_000, 0), ("4,000 names", 1, 4_000), ("9,000 names", 1, 9_000)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_certificates(victim: Any, what: str, groups: int, names: int, known: bool) -> None:
    """Chains of certificates end at 100 KB, which is what the TLS library takes."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, f"group-{number}") for number in range(groups)]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "attack"), *parts])
    shown = [f"name-{number}.example" for number in range(names)]
    context = certificate(victim, subject, shown, known=known)
    with victim.attacked(f"certificates with {what}, {'known' if known else 'unknown'}"):
        for _ in range(20):
            with suppress(OSError), connected(victim, context) as each:
                each.sendall(head(MAPS))
                assert each.recv(12) in (b"", b"HTTP/1.1 403" if known else b"HTTP/1.1 401")


def on_one_connection(victim: Any, count: int, method: str, path: str, body: Any, kind: str) -> set[int]:
    connection = HTTPSConnection("127.0.0.1", victim.port, timeout=60, context=victim.contexts[False])
    found = set()
    for _ in range(count):
        with suppress(HTTPException):
            connection.request(method, path, orjson.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            answer.read()
            found.add(answer.status)
    connection.close()
    return found


def test_dry_runs(victim: Any) -> None:
    """What is not written is not kept either."""
    body = config_map("dry", data={"a": "x" * 1_000})
    with victim.attacked("1,000 dry runs", allowance=24 << 20):
        found = on_one_connection(victim, 1_000, "POST", f"{MAPS}?dryRun=All", body, "application/json")
    assert found == {201}


LONG = "x" * 900_000
NAMED: list[tuple[str, str, dict[str, Any]]] = [
    ("a label's key", MAPS, {**config_map("a"), "metadata": {"name": "a", "labels": {LONG: "v"}}}),
    ("a label's value", MAPS, {**config_map("a"), "metadata": {"name": "a", "labels": {"k": LONG}}}),
    ("an annotation's key", MAPS, {**config_map("a"), "metadata": {"name": "a", "annotations": {LONG: "v"}}}),
    ("a name", MAPS, config_map(LONG)),
    ("a generated name", MAPS, {**config_map("a"), "metadata": {"generateName": LONG}}),
    ("a finalizer", MAPS, {**config_map("a"), "metadata": {"name": "a", "finalizers": [LONG]}}),
    ("a key of data", MAPS, config_map("a", data={LONG: ""})),
    (
        "a user in a review",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": LONG, "resourceAttributes": {"verb": LONG, "resource": "pods", "name": LONG}},
        },
    ),
    (
        "a token in a review",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": f"{LONG}.{LONG}.{LONG}"}},
    ),
]


@pytest.mark.parametrize(("what", "path", "body"), NAMED, ids=[what for what, _, _ in NAMED])
def test_long_names(victim: Any, what: str, path: str, body: dict[str, Any]) -> None:
    with victim.attacked(f"{what} of {len(orjson.dumps(body)) >> 10} KB"):
        for _ in range(3):
            assert victim.call("POST", path, body).status in (201, 400, 413, 422)


def test_applies_that_own_very_much(victim: Any) -> None:
    apply = "application/apply-patch+yaml"
    body = config_map("owned", data={f"k{number}": "" for number in range(60_000)})
    size = len(orjson.dumps(body))
    with victim.attacked("applies of 60,000 fields, by two managers", allowance=max(64 << 20, 40 * size)):
        for manager in ("one", "two"):
            path = f"{MAPS}/owned?fieldManager={manager}"
            assert victim.call("PATCH", path, body, apply).status in (200, 201, 413, 422, 500)
    victim.call("DELETE", f"{MAPS}/owned")
