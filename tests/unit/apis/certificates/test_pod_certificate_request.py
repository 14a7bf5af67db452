"""Pod certificate requests."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from pilothouse.apis import types
from pilothouse.apis.certificates.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

requests = STRATEGIES["podcertificaterequests"]()


NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "n")])


START = datetime(2030, 1, 1, tzinfo=UTC)


KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(key: Any = KEY, *, ca: bool = False, hours: int = 24) -> str:
    builder = (
        x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(key.public_key()).serial_number(7)
    )
    builder = builder.not_valid_before(START).not_valid_after(START + timedelta(hours=hours))
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def stub(key: Any = KEY) -> str:
    made = x509.CertificateSigningRequestBuilder().subject_name(NAME).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.DER)).decode()


SPEC = {
    "signerName": "example.com/s",
    "podName": "p",
    "podUID": "1",
    "serviceAccountName": "s",
    "serviceAccountUID": "2",
    "nodeName": "n",
    "nodeUID": "3",
    "stubPKCS10Request": stub(),
}


def pod_request(spec: Object | None = None, status: Object | None = None) -> Object:
    body = {"spec": {**SPEC, **(spec or {})}, "status": status or {}}
    obj = decode(types.struct("certificates.v1beta1.PodCertificateRequest"), body)[0]
    requests.default(obj)
    return obj


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"podUID": ""}, ['spec.podUID: Invalid value: "": must not be empty']),
        ({"nodeUID": "x" * 129}, ["spec.nodeUID: Too long: may not be more than 128 bytes"]),
        (
            {"maxExpirationSeconds": 1},
            ["spec.maxExpirationSeconds: Invalid value: 1: must be in the range [3600, 7862400]"],
        ),
        (
            {"maxExpirationSeconds": 90000, "signerName": "kubernetes.io/s"},
            ["spec.maxExpirationSeconds: Invalid value: 90000: must be in the range [3600, 86400]"],
        ),
        (
            {"stubPKCS10Request": ""},
            [
                "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) "
                "must be set"
            ],
        ),
        (
            {"pkixPublicKey": "AAAA"},
            [
                "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) "
                "must be set"
            ],
        ),
        (
            {"stubPKCS10Request": "", "pkixPublicKey": "AAAA", "proofOfPossession": "AAAA"},
            ['spec.pkixPublicKey: Invalid value: "AAAA": must be a valid PKIX-serialized public key'],
        ),
        ({"stubPKCS10Request": "AAAA"}, ["spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"]),
        (
            {"stubPKCS10Request": stub(rsa.generate_private_key(65537, 2048))},
            ['spec.stubPKCS10Request: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096'],
        ),
    ],
)
def test_pod_requests(spec: Object, expected: list[str]) -> None:
    assert [str(error) for error in requests.validate(Context(), pod_request(spec))] == expected


def outcome(kind: str) -> Object:
    time = "2030-01-01T00:00:00Z"
    return {"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": time}


ISSUED = {
    "conditions": [outcome("Issued")],
    "certificateChain": certificate(),
    "notBefore": "2030-01-01T00:00:00Z",
    "notAfter": "2030-01-02T00:00:00Z",
    "beginRefreshAt": "2030-01-01T12:00:00Z",
}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, ISSUED, []),
        ({}, {"conditions": [outcome("Denied")]}, []),
        (
            {},
            {"conditions": [outcome("Denied")], "certificateChain": "x"},
            [
                "status: Invalid value: non-condition status fields must be empty when denying or failing the "
                "PodCertificateRequest"
            ],
        ),
        (
            {"conditions": [outcome("Denied")]},
            ISSUED,
            ["status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"],
        ),
        (
            {},
            {**ISSUED, "notBefore": None},
            ["status.notBefore: Required value: must be present and consistent with the issued certificate"],
        ),
        (
            {},
            {**ISSUED, "beginRefreshAt": "2030-01-01T00:05:00Z"},
            [
                'status.beginRefreshAt: Invalid value: "2030-01-01T00:05:00Z": must be at least 10 minutes after '
                "status.notBefore"
            ],
        ),
        (
            {},
            {"conditions": [outcome("Odd")]},
            ['status.conditions.[0].type: Unsupported value: "Odd": supported values: "Issued", "Denied", "Failed"'],
        ),
    ],
)
def test_answers(before: Object, after: Object, expected: list[str]) -> None:
    strategy = requests.subresources["status"]()
    context = Context(now="2030-01-01T00:01:00Z")
    found = strategy.validate_update(context, pod_request(status=after), pod_request(status=before))
    assert [str(error) for error in found] == expected


def test_a_certificate_for_another_key_is_refused() -> None:
    other = {**ISSUED, "certificateChain": certificate(ec.generate_private_key(ec.SECP256R1()))}
    strategy = requests.subresources["status"]()
    [found] = strategy.validate_update(Context(now="2030-01-01T00:01:00Z"), pod_request(status=other), pod_request())
    assert found.detail == "leaf certificate was not issued to the requested public key"


def test_a_certificate_is_for_the_key_that_came_without_a_stub() -> None:
    key = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    strategy = requests.subresources["status"]()
    for given, expected in ((key, []), (b"none", ["must be a valid PKIX-serialized public key"])):
        spec = {"stubPKCS10Request": None, "pkixPublicKey": base64.b64encode(given).decode()}
        old = pod_request(spec)
        found = strategy.validate_update(Context(now="2030-01-01T00:01:00Z"), pod_request(spec, ISSUED), old)
        assert [error.detail for error in found] == expected
