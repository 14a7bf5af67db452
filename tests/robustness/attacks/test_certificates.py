"""Requests for certificates, and certificates in secrets: long ones, and texts of which every line begins another."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.robustness.attacks.conftest import Victim

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SECRETS = "/api/v1/namespaces/default/secrets"
LINES = [b"-----BEGIN A-----\n", b"-----BEGIN a:b-----\n", b"\n-----END A-----"]


@pytest.fixture(scope="module")
def managed(launch_victim: Callable[..., Victim]) -> Victim:
    """A server with the controllers that approve and sign."""
    controllers = ("approving", "signing")
    return launch_victim(
        "--controllers=" + ",".join(f"certificatesigningrequest-{each}-controller" for each in controllers)
    )


@cache
def pkcs10(names: int) -> bytes:
    subject = [(NameOID.COMMON_NAME, "system:node:a"), (NameOID.ORGANIZATION_NAME, "system:nodes")]
    alternatives = x509.SubjectAlternativeName([x509.DNSName(f"name-{n}.example.com") for n in range(names)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    )
    made = builder.add_extension(alternatives, critical=False).sign(
        ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()
    )
    return made.public_bytes(serialization.Encoding.PEM)


def request(name: str, pem: bytes, signer: str, usage: str) -> dict[str, Any]:
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": f"kubernetes.io/{signer}",
        "usages": [usage, "digital signature"],
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("signer", "usage"),
    [
        ("kubelet-serving", "server auth"),
        ("kube-apiserver-client-kubelet", "client auth"),
        ("kube-apiserver-client", "client auth"),
    ],
)
def test_requests_with_many_names(managed: Victim, signer: str, usage: str) -> None:
    pem = pkcs10(15_000)
    with managed.attacked(f"requests of {signer} with 15,000 names, {len(pem) >> 10} KB"):
        for number in range(4):
            name = f"{signer}-{number}"
            made = managed.call("POST", REQUESTS, request(name, pem, signer, usage))
            assert made.status == 201
            approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
            path = f"{REQUESTS}/{name}/approval"
            assert managed.call("PUT", path, {**made.json, "status": {"conditions": [approved]}}).status in (200, 409)
            while not is_settled(managed.call("GET", f"{REQUESTS}/{name}").json["status"]):
                assert managed.server.process.poll() is None


def is_settled(status: dict[str, Any]) -> bool:
    return bool(status.get("certificate")) or any(each["type"] == "Failed" for each in status.get("conditions") or ())


@pytest.mark.parametrize("line", LINES, ids=["begins", "begins-with-colons", "ends"])
def test_blocks_that_never_end(victim: Victim, line: bytes) -> None:
    pem = line * 40_000
    signing = request("endless", pem, "kube-apiserver-client", "client auth")
    with victim.attacked(f"a request for a certificate: {line.decode().strip()} 40,000 times"):
        assert victim.call("POST", REQUESTS, signing).status == 422
    data = {name: base64.b64encode(pem).decode() for name in ("tls.crt", "tls.key")}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "endless"}, "type": "kubernetes.io/tls"}
    with victim.attacked(f"a secret of TLS: {line.decode().strip()} 40,000 times"):
        assert victim.call("POST", f"{SECRETS}?dryRun=All", {**secret, "data": data}).status in (201, 422)
