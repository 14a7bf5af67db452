"""Service account tokens signed by another process: a real gRPC service on a Unix socket."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from ssl import create_default_context

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pilothouse.authn import jose
from pilothouse.machinery.protobuf import plain_messages as messages

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ISSUER = "https://kubernetes.default.svc.cluster.local"


class Signer:
    """Holds the keys by name; the newest signs."""

    def __init__(self) -> None:
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.longest = 7200
        self.refuses = False
        self.rotate("first")

    def rotate(self, name: str) -> None:
        self.keys[name] = ec.generate_private_key(ec.SECP256R1())

    def sign(self, request: bytes, context: object) -> bytes:
        import grpc

        if self.refuses:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not today")  # type: ignore[attr-defined]
        claims = messages.text_of(messages.decode(request), 1)
        name = list(self.keys)[-1]
        header = jose.encode_base64url(orjson.dumps({"alg": "ES256", "kid": name, "typ": "JWT"}))
        signature = jose.Signer(self.keys[name])._signature(f"{header}.{claims}".encode())
        return messages.encode({1: header, 2: jose.encode_base64url(signature)})

    def fetch_keys(self, request: bytes, context: object) -> bytes:
        der, pkix = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        keys = [
            messages.encode({1: name, 2: key.public_key().public_bytes(der, pkix)}) for name, key in self.keys.items()
        ]
        return b"".join(messages.encode({1: key}) for key in keys) + messages.encode(
            {2: messages.encode({1: 1_700_000_000}), 3: 3600}
        )

    def metadata(self, request: bytes, context: object) -> bytes:
        return messages.encode({1: self.longest})


@pytest.fixture
def signer(tmp_path):
    grpc = pytest.importorskip("grpc")
    service = Signer()
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {"Sign": service.sign, "FetchKeys": service.fetch_keys, "Metadata": service.metadata}
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1.ExternalJWTSigner", handlers)])
    service.socket = tmp_path / "signer.sock"
    server.add_insecure_port(f"unix:{service.socket}")
    server.start()
    yield service
    server.stop(None).wait()


def start(launch, secured, signer, *more):
    data, flags = secured
    endpoint = f"--service-account-signing-endpoint={signer.socket}"
    return launch(data, *flags, endpoint, f"--service-account-issuer={ISSUER}", *more)


def issue(server, namespace, **spec):
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    return server.call("POST", path, {"spec": spec})


def who_is(server, token):
    context = create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=120, context=context)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        connection.request("POST", WHO, b"{}", headers)
        answer = connection.getresponse()
        body = orjson.loads(answer.read())
        return answer.status, body.get("status", {}) if answer.status == 201 else body
    finally:
        connection.close()


def test_tokens_are_signed_verified_and_published(host, secured, signer):
    server = start(host, secured, signer)
    namespace = server.namespace("external")
    code, headers, answer = issue(server, namespace, expirationSeconds=9000)
    assert code == 201
    # The service's limit holds where no flag sets one.
    assert answer["spec"]["expirationSeconds"] == 7200
    assert "requested expiration of 9000 seconds shortened to 7200 seconds" in headers["warning"]
    token = answer["status"]["token"]
    assert orjson.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))["kid"] == "first"
    code, status = who_is(server, token)
    assert (code, status["userInfo"]["username"]) == (201, f"system:serviceaccount:{namespace}:default")
    code, headers, document = server.call("GET", "/openid/v1/jwks", headers={"Accept": "*/*"})
    assert [key["kid"] for key in orjson.loads(document)["keys"]] == ["first"]
    assert 0 < int(headers["cache-control"].removeprefix("public, max-age=")) <= 3600
    # A key that nobody has heard of yet is asked for when a token names it.
    signer.rotate("second")
    token = issue(server, namespace)[2]["status"]["token"]
    assert who_is(server, token)[0] == 201
    signer.refuses = True
    code, _, answer = issue(server, namespace)
    assert code == 500
    assert answer["message"] == (
        "Internal error occurred: failed to generate token: while signing jwt: rpc error: code = PermissionDenied "
        "desc = not today"
    )
    page = server.call("GET", "/metrics")[2].decode()
    assert 'apiserver_externaljwt_sign_request_total{code="PermissionDenied"} 1' in page
    assert "apiserver_externaljwt_fetch_keys_data_timestamp 1700000000" in page


@pytest.mark.parametrize(
    ("longest", "flags", "message"),
    [
        (599, (), "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"),
        (3600, ("--service-account-max-token-expiration=2h",), "service-account-signing-endpoint: 2h0m0s > 1h0m0s"),
    ],
)
def test_limits_that_do_not_fit_stop_the_start(launch, secured, signer, longest, flags, message):
    signer.longest = longest
    with pytest.raises(RuntimeError) as failure:
        start(launch, secured, signer, *flags)
    assert message in str(failure.value)
    assert "Traceback" not in str(failure.value)
