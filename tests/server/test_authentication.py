"""Who is asking: every way to authenticate against a running server, with real peers where there are any."""

from __future__ import annotations

import base64
import re
import time
from http.client import HTTPSConnection
from ssl import create_default_context

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pilothouse.authn.jose import Signer, VerificationKey, as_jwk, key_id
from pilothouse.testing.waiting import until

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


def put(path, content):
    """Replace a file at once: whoever reads it meanwhile sees the old content or the new."""
    fresh = path.with_name("fresh")
    fresh.write_bytes(content)
    fresh.replace(path)


def ask(server, token="", headers=None, method="POST", path=WHO):
    """A request without a client certificate."""
    context = create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=120, context=context)
    sent = {"Content-Type": "application/json", **(headers or {})}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, b"{}" if method == "POST" else None, sent)
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())
    finally:
        connection.close()


def user_of(answer):
    return answer["status"]["userInfo"]


def test_certificate_names_user_and_group(server):
    code, _, answer = server.call("POST", WHO, {})
    assert code == 201
    user = user_of(answer)
    assert user["username"] == "kubernetes-admin"
    assert user["groups"] == ["system:masters", "system:authenticated"]
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
def test_anonymous_may_ask_for_health_only(server, path):
    context = create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    connection = HTTPSConnection("127.0.0.1", server.port, context=context)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()
    assert ask(server, method="GET", path="/api/v1/namespaces")[0] == 403


@pytest.mark.parametrize("token", ["nope", "a.b.c", "x" * 100_000, "ä"])
def test_wrong_tokens_are_refused_everywhere(server, token):
    for path in ("/version", "/api/v1/namespaces"):
        code, answer = ask(server, method="GET", path=path, headers={"Authorization": f"Bearer {token}".encode()})
        assert (code, answer["reason"]) == (401, "Unauthorized")
        assert token not in orjson.dumps(answer).decode()


def test_headers_of_a_front_proxy_mean_nothing_without_its_certificate(server):
    forged = {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}
    assert ask(server, headers=forged)[0] == 403


def test_front_proxy_names_the_user(server):
    pki = server.data / "pki"
    context = create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "front-proxy-client.crt", pki / "front-proxy-client.key")
    connection = HTTPSConnection("127.0.0.1", server.port, context=context)
    headers = {
        "X-Remote-User": "jane",
        "X-Remote-Group": "devs",
        "X-Remote-Extra-Scopes": "a",
        "Content-Type": "application/json",
    }
    connection.request("POST", WHO, b"{}", headers)
    answer = connection.getresponse()
    user = user_of(orjson.loads(answer.read()))
    connection.close()
    assert user == {"username": "jane", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["a"]}}


def token_for(server, namespace, account="default", **spec):
    code, _, answer = server.call(
        "POST",
        f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    assert code == 201, answer
    return answer["status"]["token"]


def test_service_account_tokens_from_issue_to_the_end_of_the_bound_secret(server):
    namespace = server.namespace("authn-tokens")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bound"}}
    uid = server.call("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)[2]["metadata"]["uid"]
    token = token_for(
        server, namespace, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": uid}
    )
    claims = orjson.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["secret"] == {"name": "bound", "uid": uid}
    code, answer = ask(server, token)
    assert (code, user_of(answer)["username"]) == (201, f"system:serviceaccount:{namespace}:default")
    server.call("DELETE", f"/api/v1/namespaces/{namespace}/secrets/bound")
    fresh = token_for(server, namespace)
    assert ask(server, fresh)[0] == 201
    # Answers are remembered for ten seconds, by token and audiences: ask for audiences that were not asked for yet.
    review = {"spec": {"token": token, "audiences": [claims["iss"], "anybody"]}}
    status = server.call("POST", REVIEW, review)[2]["status"]
    assert (status.get("authenticated"), status["error"]) == (
        None,
        "[invalid bearer token, service account token has been invalidated]",
    )
    review["spec"]["token"] = fresh
    assert server.call("POST", REVIEW, review)[2]["status"]["authenticated"] is True


def test_tokens_for_others_are_not_for_us(server):
    namespace = server.namespace("authn-audiences")
    token = token_for(server, namespace, audiences=["vault"])
    assert ask(server, token)[0] == 401
    review = {"spec": {"token": token, "audiences": ["vault"]}}
    status = server.call("POST", REVIEW, review)[2]["status"]
    assert (status["authenticated"], status["audiences"]) == (True, ["vault"])


def test_openid_documents_verify_tokens(server):
    namespace = server.namespace("authn-openid")
    code, headers, keys = server.call("GET", "/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"})
    assert (code, headers["content-type"]) == (200, "application/jwk-set+json")
    assert headers["cache-control"] == "public, max-age=3600"
    header = orjson.loads(base64.urlsafe_b64decode(token_for(server, namespace).split(".")[0] + "=="))
    assert header["kid"] in {key["kid"] for key in orjson.loads(keys)["keys"]}
    configuration = server.call("GET", "/.well-known/openid-configuration")[2]
    assert configuration["issuer"] == "https://kubernetes.default.svc"
    assert configuration["jwks_uri"].endswith("/openid/v1/jwks")


def test_bootstrap_tokens(host, secured):
    data, flags = secured
    server = host(data, *flags, "--enable-bootstrap-token-auth")
    secret = {
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:test",
        },
    }
    assert server.call("POST", "/api/v1/namespaces/kube-system/secrets", secret)[0] == 201
    code, answer = ask(server, "abcdef.0123456789abcdef")
    assert code == 201
    assert user_of(answer)["username"] == "system:bootstrap:abcdef"
    assert "system:bootstrappers:test" in user_of(answer)["groups"]
    assert ask(server, "abcdef.0123456789abcdee")[0] == 401


def test_static_tokens_are_read_again_when_the_file_changes(host, secured, tmp_path):
    data, flags = secured
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("first,jane,1\n")
    server = host(data, *flags, "--token-auth-file", str(tokens))
    assert ask(server, "first")[0] == 201
    tokens.write_text("second,jane,1\n")
    until(lambda: ask(server, "second")[0] == 201)
    assert ask(server, "first")[0] == 401


class Issuer:
    """What an OpenID issuer serves, and the tokens it makes."""

    def __init__(self):
        self.rotate()
        self.url = ""

    def rotate(self):
        self.key = ec.generate_private_key(ec.SECP256R1())

    def answer(self, path, body):
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        public = self.key.public_key()
        return 200, {"keys": [as_jwk(VerificationKey(key_id(public), public))]}

    def token(self, **claims):
        now = int(time.time())
        return Signer(self.key).sign({"iss": self.url, "aud": "app", "exp": now + 600, "iat": now, **claims})


@pytest.fixture
def issuer(start_peer):
    made = Issuer()
    made.peer = start_peer(made.answer)
    made.url = made.peer.url
    return made


def test_oidc_by_flags_with_key_rotation(host, secured, issuer):
    data, flags = secured
    server = host(
        data,
        *flags,
        f"--oidc-issuer-url={issuer.url}",
        "--oidc-client-id=app",
        f"--oidc-ca-file={issuer.peer.authority}",
        "--oidc-groups-claim=roles",
        "--oidc-groups-prefix=oidc:",
        "--oidc-required-claim=org=acme",
        "--oidc-signing-algs=ES256",
    )
    code, answer = ask(server, issuer.token(sub="jane", roles=["devs"], org="acme"))
    assert code == 201
    assert user_of(answer)["username"] == f"{issuer.url}#jane"
    assert user_of(answer)["groups"] == ["oidc:devs", "system:authenticated"]
    assert ask(server, issuer.token(sub="jane"))[0] == 401
    assert ask(server, issuer.token(sub="jane", org="acme", exp=1))[0] == 401
    assert ask(server, issuer.token(sub="jane", org="acme", aud="other"))[0] == 401
    issuer.rotate()
    token = issuer.token(sub="joe", org="acme")
    until(lambda: ask(server, token)[0] == 201)  # unknown keys are looked up at most once a second


def test_the_authority_of_an_issuer_is_read_again_when_the_file_changes(host, secured, issuer, tmp_path):
    data, flags = secured
    authority = tmp_path / "issuer-ca.crt"
    authority.write_bytes((data / "pki" / "ca.crt").read_bytes())
    trust = (f"--oidc-issuer-url={issuer.url}", f"--oidc-ca-file={authority}", "--oidc-signing-algs=ES256")
    server = host(data, *flags, *trust, "--oidc-client-id=app")
    token = issuer.token(sub="jane")
    assert ask(server, token)[0] == 401
    authority.write_bytes(issuer.peer.authority.read_bytes())
    until(lambda: ask(server, token)[0] == 201)


def test_structured_configuration_with_several_issuers_and_anonymous_paths(
    launch, secured, start_peer, issuer, tmp_path
):
    data, flags = secured
    second = Issuer()
    second.peer = start_peer(second.answer)
    second.url = second.peer.url
    entries = [
        {
            "issuer": {
                "url": each.url,
                "audiences": ["app"],
                "certificateAuthority": each.peer.authority.read_text(),
            },
            "claimMappings": {"username": {"claim": "sub", "prefix": f"{number}:"}},
        }
        for number, each in enumerate((issuer, second))
    ]
    entries[1]["claimMappings"] = {"username": {"expression": "'cel:' + claims.sub"}}
    entries[1]["claimValidationRules"] = [{"expression": "claims.org == 'acme'", "message": "not one of us"}]
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": entries,
        "anonymous": {"enabled": True, "conditions": [{"path": "/readyz"}]},
    }
    path = tmp_path / "authentication.json"
    path.write_bytes(orjson.dumps(document))
    server = launch(data, *flags, f"--authentication-config={path}")
    assert user_of(ask(server, issuer.token(sub="jane"))[1])["username"] == "0:jane"
    assert user_of(ask(server, second.token(sub="jane", org="acme"))[1])["username"] == "cel:jane"
    assert ask(server, second.token(sub="jane", org="other"))[0] == 401
    assert ask(server, method="GET", path="/version")[0] == 401
    # A new content takes the place of the old at once, but not about who need not authenticate.
    put(path, orjson.dumps({**document, "jwt": entries[:1], "anonymous": {"enabled": True}}))
    until(lambda: "anonymous: Forbidden: changed from initial configuration file" in server.log.read_text())
    assert ask(server, method="GET", path="/version")[0] == 401
    assert ask(server, second.token(sub="joe", org="acme"))[0] == 201
    put(path, b"nonsense")
    until(lambda: "couldn't get version/kind" in server.log.read_text())
    put(path, orjson.dumps({**document, "jwt": entries[:1]}))
    until(lambda: ask(server, second.token(sub="jim", org="acme"))[0] == 401)
    page = server.call("GET", "/metrics")[2].decode()
    reloads = re.findall(r'authentication_config_controller_automatic_reloads_total{status="(\w+)",.*} (\d+)', page)
    assert dict(reloads) == {"failure": "2", "success": "1"}
    with pytest.raises(RuntimeError, match="--anonymous-auth flag cannot be set when anonymous field is configured"):
        launch(tmp_path / "other", *flags, f"--authentication-config={path}", "--anonymous-auth=true")


def test_token_webhook(host, secured, start_peer, tmp_path):
    def review(path, body):
        good = body["spec"]["token"] == "from-the-webhook"
        user = {"username": "webhooked", "groups": ["g"], "extra": {"k": ["v"]}}
        status = {"authenticated": True, "user": user} if good else {"authenticated": False}
        return 200, {**body, "status": status}

    peer = start_peer(review)
    data, flags = secured
    config = peer.kubeconfig(tmp_path / "webhook.kubeconfig", "/authenticate")
    server = host(
        data,
        *flags,
        f"--authentication-token-webhook-config-file={config}",
        "--authentication-token-webhook-version=v1",
    )
    for _ in range(3):
        code, answer = ask(server, "from-the-webhook")
        assert (code, user_of(answer)["username"]) == (201, "webhooked")
    assert [path for path, _ in peer.requests] == ["/authenticate"]
    assert peer.requests[0][1]["apiVersion"] == "authentication.k8s.io/v1"
    assert ask(server, "other")[0] == 401


def test_no_token_is_ever_logged(launch, secured, tmp_path):
    data, flags = secured
    server = launch(data, *flags, "--v=9")
    token = token_for(server, server.namespace("authn-log"))
    assert ask(server, token)[0] == 201
    assert ask(server, token + "x")[0] == 401
    key = (data / "pki" / "sa.key").read_bytes()
    assert serialization.load_pem_private_key(key, None)
    log = server.log.read_text(errors="replace")
    assert token.split(".")[2] not in log
    assert token.split(".")[1] not in log


def test_attempts_are_counted(host, secured):
    data, flags = secured
    server = host(data, *flags)
    token = token_for(server, server.namespace("authn-metrics"))
    for credential in (token, token, "wrong"):
        ask(server, credential)
    page = server.call("GET", "/metrics")[2].decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in page if not line.startswith("#"))
    assert values['authentication_attempts{result="error"}'] == "1"
    assert int(values['authentication_attempts{result="success"}']) >= 4
    assert values['authentication_token_cache_request_total{status="hit"}'] == "1"
    assert values['authentication_token_cache_fetch_total{status="ok"}'] == "2"
    # The server's own controllers ask too.
    assert int(values['apiserver_authorization_decisions_total{type="RBAC",name="rbac",decision="allowed"}']) >= 2
    assert values["apiserver_audit_event_total"] == "0"
    assert "# TYPE authentication_attempts counter" in page
    families = [line.split()[2] for line in page if line.startswith("# TYPE")]
    assert families == sorted(families)
