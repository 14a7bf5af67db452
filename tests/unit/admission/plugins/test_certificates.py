"""Certificates and trust bundles: who may approve, sign and attest, and what nobody signs."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.certificate_approval import CertificateApproval
from pilothouse.admission.plugins.certificate_signing import CertificateSigning
from pilothouse.admission.plugins.certificate_subject_restriction import CertificateSubjectRestriction
from pilothouse.admission.plugins.cluster_trust_bundle_attest import ClusterTrustBundleAttest
from pilothouse.endpoints.admission import UPDATE

REQUESTS = "certificates.k8s.io/v1/certificatesigningrequests"
BUNDLES = "certificates.k8s.io/v1/clustertrustbundles"
SIGNER = "example.com/s"


def signing_request(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"signerName": SIGNER}, "status": status}


@pytest.mark.parametrize("name", [SIGNER, "example.com/*", None])
async def test_approval(
    environment: Environment, authorizer: Any, make_request: Any, refused: Any, name: str | None
) -> None:
    if name is not None:
        authorizer.allowed.add(("approve", "signers", name))
    attributes = make_request(f"{REQUESTS}:approval", signing_request(), signing_request(), operation=UPDATE)
    action = CertificateApproval(environment).validate(attributes)
    if name is not None:
        await action
        return
    error = await refused(action)
    assert error.message.endswith('user not permitted to approve requests with signerName "example.com/s"')
    assert authorizer.questions == [("approve", "signers", SIGNER), ("approve", "signers", "example.com/*")]


async def test_signing(environment: Environment, authorizer: Any, make_request: Any, refused: Any) -> None:
    plugin = CertificateSigning(environment)
    resource = f"{REQUESTS}:status"
    await plugin.validate(make_request(resource, signing_request(), signing_request(), operation=UPDATE))
    signed = make_request(resource, signing_request(certificate="x"), signing_request(), operation=UPDATE)
    error = await refused(plugin.validate(signed))
    assert error.message.endswith('user not permitted to sign requests with signerName "example.com/s"')
    authorizer.allowed.add(("sign", "signers", SIGNER))
    await plugin.validate(signed)


def bundle(signer: str = SIGNER, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "b", **metadata}, "spec": {"signerName": signer, "trustBundle": "x"}}


async def test_attesting(environment: Environment, authorizer: Any, make_request: Any, refused: Any) -> None:
    plugin = ClusterTrustBundleAttest(environment)
    await plugin.validate(make_request(BUNDLES, bundle("")))
    error = await refused(plugin.validate(make_request(BUNDLES, bundle())))
    assert error.message.endswith('user not permitted to attest for signerName "example.com/s"')
    collected = bundle(ownerReferences=[{"name": "x"}])
    await plugin.validate(make_request(BUNDLES, collected, bundle(), operation=UPDATE))
    await refused(plugin.validate(make_request(BUNDLES, bundle(labels={"a": "b"}), bundle(), operation=UPDATE)))
    authorizer.allowed.add(("attest", "signers", "example.com/*"))
    await plugin.validate(make_request(BUNDLES, bundle()))


@pytest.mark.parametrize(
    ("request_text", "why"),
    [
        ("", "PEM block type must be CERTIFICATE REQUEST"),
        (
            base64.b64encode(
                b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
            ).decode(),
            "asn1: structure error: tags don't match (16 vs {class:0 tag:0 length:0 isCompound:false}) {optional:false "
            "explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 "
            "set:false omitEmpty:false} certificateRequest @2",
        ),
    ],
)
async def test_requests_that_cannot_be_read(
    environment: Environment, make_request: Any, refused: Any, request_text: str, why: str
) -> None:
    spec = {"signerName": "kubernetes.io/kube-apiserver-client", "request": request_text}
    obj = {"metadata": {"name": "r"}, "spec": spec}
    error = await refused(CertificateSubjectRestriction(environment).validate(make_request(REQUESTS, obj)))
    assert error.message.endswith(f"failed to parse CSR: {why}")


def encoded_request(*organizations: str) -> str:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.parametrize(
    ("signer", "organizations", "allowed"),
    [
        ("kubernetes.io/kube-apiserver-client", ("devs", "system:masters"), False),
        ("kubernetes.io/kube-apiserver-client", ("devs",), True),
        ("example.com/s", ("system:masters",), True),
    ],
)
async def test_masters_are_not_signed(
    environment: Environment, make_request: Any, refused: Any, signer: str, organizations: Any, allowed: bool
) -> None:
    spec = {"signerName": signer, "request": encoded_request(*organizations)}
    action = CertificateSubjectRestriction(environment).validate(
        make_request(REQUESTS, {"metadata": {"name": "r"}, "spec": spec})
    )
    if allowed:
        await action
        return
    assert (await refused(action)).message.endswith(
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )
