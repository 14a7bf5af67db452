"""Approval, signing and cleaning of certificates."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.controllers.certificates.authority import Authority, CannotSign, lifetime
from pilothouse.controllers.certificates.cleaner import is_over
from pilothouse.controllers.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
    BadRequest,
    check,
    read,
)
from pilothouse.controllers.certificates.trust_bundles import bundle_name
from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.machinery.times import Instant, format_time
from pilothouse.machinery.user import User
from pilothouse.testing.running_controllers import RunningControllers

CLIENT_USAGES = ["client auth", "digital signature"]
SERVING_USAGES = ["digital signature", "key encipherment", "server auth"]
KEY = ec.generate_private_key(ec.SECP256R1())


def pkcs10(name: str = "system:node:n", groups: tuple[str, ...] = ("system:nodes",), *alternatives: Any) -> str:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder(
        x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def request(signer: str, usages: list[str], *subject: Any) -> dict[str, Any]:
    return {"spec": {"request": pkcs10(*subject), "signerName": signer, "usages": usages}}


DNS = x509.DNSName("n.example.com")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request(CLIENT, ["client auth"]), ""),
        (request(CLIENT, ["server auth"]), "invalid usage for client certificate: server auth"),
        (
            request(CLIENT, ["digital signature"]),
            "missing required usage for client certificate: client auth",
        ),
        (request(KUBELET_CLIENT, CLIENT_USAGES), ""),
        (
            request(KUBELET_CLIENT, SERVING_USAGES),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (request(KUBELET_CLIENT, CLIENT_USAGES, "system:node:n", ("a",)), "subject organization is not system:nodes"),
        (
            request(KUBELET_CLIENT, CLIENT_USAGES, "n"),
            "subject common name does not begin with system:node:",
        ),
        (
            request(KUBELET_CLIENT, CLIENT_USAGES, "system:node:n", ("system:nodes",), DNS),
            "DNS subjectAltNames are not allowed",
        ),
        (request(KUBELET_SERVING, SERVING_USAGES), "DNS or IP subjectAltName is required"),
        (request(KUBELET_SERVING, SERVING_USAGES, "system:node:n", ("system:nodes",), DNS), ""),
        (
            request(
                KUBELET_SERVING,
                SERVING_USAGES,
                "system:node:n",
                ("system:nodes",),
                DNS,
                x509.UniformResourceIdentifier("a://b"),
            ),
            "URI subjectAltNames are not allowed",
        ),
        (request(LEGACY_UNKNOWN, ["code signing"], "x", ()), ""),
    ],
)
def test_what_signers_sign(asked: dict[str, Any], why: str) -> None:
    try:
        check(read(asked), asked["spec"]["signerName"])
    except BadRequest as error:
        assert str(error) == why
    else:
        assert not why


def test_what_is_no_request() -> None:
    with pytest.raises(BadRequest, match="CERTIFICATE REQUEST"):
        read({"spec": {"request": base64.b64encode(b"nothing").decode()}})


@pytest.mark.parametrize(("asked", "given"), [(None, 1e6), (5, 600.0), (3600, 3600.0), (10**9, 1e6)])
def test_lifetimes(asked: int | None, given: float) -> None:
    assert lifetime(asked, 1e6) == given


def certificate(days: int) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "n")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, start, start + timedelta(days=days))
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


NOW = Instant(int(datetime(2026, 6, 1, tzinfo=UTC).timestamp()), 0)


def ago(hours: float) -> str:
    return format_time(Instant(NOW.seconds - int(hours * 3600), 0))


@pytest.mark.parametrize(
    ("conditions", "issued", "age", "over"),
    [
        ({}, "", 23, False),
        ({}, "", 25, True),
        ({"Denied": 0.5}, "", 48, False),
        ({"Denied": 2}, "", 48, True),
        ({"Approved": 5, "Failed": 2}, "", 48, True),
        ({"Approved": 2}, "", 48, False),
        ({"Approved": 25}, "", 48, True),
        ({"Approved": 0.5}, certificate(1000), 48, False),
        ({"Approved": 2}, certificate(1000), 48, True),
        ({"Approved": 0.5}, certificate(1), 48, True),
    ],
)
def test_when_requests_are_over(conditions: dict[str, float], issued: str, age: float, over: bool) -> None:
    status = {
        "conditions": [{"type": type, "lastUpdateTime": ago(hours)} for type, hours in conditions.items()],
        "certificate": issued,
    }
    assert is_over({"metadata": {"creationTimestamp": ago(age)}, "status": status}, NOW) is over


def test_the_names_of_bundles() -> None:
    assert bundle_name("kubernetes.io/kube-apiserver-serving", "x") == (
        "kubernetes.io:kube-apiserver-serving:2d711642b726b04401627ca9"
    )


@pytest.fixture
def authority_files(tmp_path: Path) -> tuple[str, str]:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    start = datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, start, start + timedelta(days=100))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    (tmp_path / "ca.crt").write_bytes(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "ca.key").write_bytes(private)
    return str(tmp_path / "ca.crt"), str(tmp_path / "ca.key")


def test_a_request_that_cannot_be_read_whole_is_not_signed(authority_files: tuple[str, str]) -> None:
    odd = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.17"), b"\x30\x02\xa3\x00")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateSigningRequestBuilder(name).add_extension(odd, critical=False)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    asked = {"spec": {"request": base64.b64encode(pem).decode(), "usages": ["client auth"]}}
    with pytest.raises(CannotSign, match="unable to read the extensions"):
        Authority(*authority_files).sign(read(asked), 3600, datetime.now(UTC))


@pytest.fixture
async def cluster(authority_files: tuple[str, str]) -> AsyncIterator[RunningControllers]:
    ca, key = authority_files
    settings = ManagerSettings(ca, ca, key)
    modules = ("certificates.approver", "certificates.signer", "certificates.cleaner", "certificates.trust_bundles")
    async with RunningControllers(*modules, settings=settings) as running:
        yield running


async def test_a_kubelet_gets_its_certificate(cluster: RunningControllers) -> None:
    requests = cluster.of("certificates.k8s.io", "v1", "certificatesigningrequests")
    group = "rbac.authorization.k8s.io"
    await cluster.of(group, "v1", "clusterrolebindings").create(
        {
            "metadata": {"name": "auto-approve"},
            "roleRef": {
                "apiGroup": group,
                "kind": "ClusterRole",
                "name": "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            },
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
        }
    )
    node = User("system:node:n", groups=("system:nodes", "system:authenticated"))
    as_node = cluster.clients.as_user(node, "kubelet").of("certificates.k8s.io", "v1", "certificatesigningrequests")
    spec = {
        "request": pkcs10(),
        "signerName": KUBELET_CLIENT,
        "usages": CLIENT_USAGES,
        "expirationSeconds": 3600,
    }
    await as_node.create({"metadata": {"name": "mine"}, "spec": spec})
    signed = await cluster.wait(requests, "", "mine", lambda obj: (obj.get("status") or {}).get("certificate"))
    condition = signed["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")
    assert condition["message"] == "Auto approving self kubelet client certificate after SubjectAccessReview."
    issued = x509.load_pem_x509_certificate(base64.b64decode(signed["status"]["certificate"]))
    assert issued.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
    assert issued.not_valid_after_utc - issued.not_valid_before_utc == timedelta(seconds=3600 + 300)
    usage = issued.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature and not usage.key_encipherment


async def test_a_signer_says_why_it_does_not_sign(cluster: RunningControllers) -> None:
    requests = cluster.of("certificates.k8s.io", "v1", "certificatesigningrequests")
    spec = {"request": pkcs10("somebody", ()), "signerName": KUBELET_SERVING, "usages": SERVING_USAGES}
    created = await requests.create({"metadata": {"name": "bad"}, "spec": spec})
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": ""}
    await requests.update({**created, "status": {"conditions": [approved]}}, subresource="approval")
    failed = await cluster.wait(requests, "", "bad", lambda obj: len(obj["status"].get("conditions") or ()) == 2)
    condition = failed["status"]["conditions"][1]
    assert (condition["type"], condition["reason"]) == ("Failed", "SignerValidationFailure")
    assert condition["message"] == "subject organization is not system:nodes"


async def test_the_bundle_of_the_api_server(cluster: RunningControllers) -> None:
    bundles = cluster.of("certificates.k8s.io", "v1", "clustertrustbundles")
    name = bundle_name("kubernetes.io/kube-apiserver-serving", Path(cluster.settings.root_ca_file).read_text())
    bundle = await cluster.wait(bundles, "", name)
    assert bundle["spec"]["signerName"] == "kubernetes.io/kube-apiserver-serving"
    await bundles.delete("", name)
    await cluster.wait(bundles, "", name, lambda obj: obj["metadata"]["uid"] != bundle["metadata"]["uid"])
