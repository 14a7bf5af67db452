"""Pod certificate requests at both versions, of which only the older one has the fields for a bare key."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pilothouse.testing.in_process import InProcessServer

REQUESTS = "/apis/certificates.k8s.io/{}/namespaces/default/podcertificaterequests"
FIELDS = {"pkixPublicKey", "proofOfPossession"}
KEY = ed25519.Ed25519PrivateKey.generate()
SPEC = {
    "signerName": "example.com/s",
    "podName": "p",
    "podUID": "1",
    "serviceAccountName": "s",
    "serviceAccountUID": "2",
    "nodeName": "n",
    "nodeUID": "3",
    "pkixPublicKey": base64.b64encode(
        KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).decode(),
    "proofOfPossession": base64.b64encode(KEY.sign(b"1")).decode(),
}


def test_a_bare_key_is_seen_at_the_version_that_has_it() -> None:
    older, newer = REQUESTS.format("v1beta1"), REQUESTS.format("v1")
    with InProcessServer("--runtime-config=certificates.k8s.io/v1beta1=true") as server:
        assert server.call("POST", older, {"metadata": {"name": "a"}, "spec": SPEC}).status == 201
        shown = server.call("GET", f"{older}/a").json["spec"]
        assert {name: shown[name] for name in FIELDS} == {name: SPEC[name] for name in FIELDS}
        assert not FIELDS & set(server.call("GET", f"{newer}/a").json["spec"])

        labels, headers = {"metadata": {"labels": {"a": "b"}}}, {"Content-Type": "application/merge-patch+json"}
        assert server.call("PATCH", f"{older}/a", labels, headers).status == 200
        # As there: an update through v1 takes the key away, and specs never change.
        refused = server.call("PATCH", f"{newer}/a", labels, headers)
        assert refused.status == 422
        assert '"PKIXPublicKey":null' in refused.json["message"]
