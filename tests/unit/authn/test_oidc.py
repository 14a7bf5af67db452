import asyncio
import json

import pytest

from pilothouse.authn import jose
from pilothouse.authn.authentication_configuration import TrustedIssuer
from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.authn.issuer_documents import FetchFailed
from pilothouse.authn.metrics import AuthenticationMetrics, hashed
from pilothouse.authn.oidc import OIDCAuthenticator
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User

NOW = 1_800_000_000
URL = "https://issuer.example"
EXPIRED = "oidc: verify token: oidc: token is expired (Token Expiry: "


def new_key():
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


class Issuer:
    """An issuer's documents, and what was fetched."""

    def __init__(self):
        self.key = new_key()
        self.fetched = []
        self.issuer = URL
        self.down = False

    async def fetch(self, url):
        self.fetched.append(url)
        await asyncio.sleep(0)
        if self.down:
            raise FetchFailed("connection refused")
        if url.endswith("/keys"):
            public = self.key.public_key()
            return json.dumps({"keys": [jose.as_jwk(jose.VerificationKey(jose.key_id(public), public))]}).encode()
        return json.dumps({"issuer": self.issuer, "jwks_uri": f"{URL}/keys"}).encode()

    def token(self, **claims):
        return jose.Signer(self.key).sign({"iss": URL, "aud": "client", "exp": NOW + 60, "sub": "jane", **claims})


def authenticator(issuer, algorithms=("RS256", "ES256"), **config):
    settings = {"audiences": ("client",), "username_claim": "sub", **config}
    return OIDCAuthenticator(TrustedIssuer(URL, **settings), issuer.fetch, algorithms, lambda: NOW)


@pytest.mark.parametrize(
    ("config", "claims", "user"),
    [
        ({}, {}, User("jane")),
        ({"username_prefix": "oidc:"}, {}, User("oidc:jane")),
        ({"groups_claim": "g"}, {"_claim_names": {"o": "s"}, "_claim_sources": {}}, User("jane")),
        ({"groups_claim": "g"}, {"_claim_names": {"g": "s"}, "_claim_sources": {"s": {"JWT": "x"}}}, User("jane")),
        ({"username_claim": "email"}, {"email": "j@x", "email_verified": True}, User("j@x")),
        ({"username_claim": "email"}, {"email": "j@x"}, User("j@x")),
        ({"groups_claim": "g", "groups_prefix": "p:"}, {"g": ["a", "b"]}, User("jane", groups=("p:a", "p:b"))),
        ({"groups_claim": "g"}, {"g": "one"}, User("jane", groups=("one",))),
        ({"groups_claim": "g"}, {}, User("jane")),
        ({"uid_claim": "oid"}, {"oid": "7"}, User("jane", "7")),
        ({"required_claims": {"hd": "x.org"}}, {"hd": "x.org"}, User("jane")),
        ({}, {"jti": "i"}, User("jane", extra={"authentication.kubernetes.io/credential-id": ("JTI=i",)})),
        ({"audiences": ("a", "client")}, {"aud": ["z", "client"]}, User("jane")),
        ({}, {"nbf": NOW + 299}, User("jane")),
    ],
)
async def test_claims_become_a_user(config, claims, user):
    issuer = Issuer()
    assert (await authenticator(issuer, **config).authenticate_token(issuer.token(**claims), ())).user == user


@pytest.mark.parametrize(
    ("config", "claims", "error"),
    [
        ({}, {"aud": "other"}, 'oidc: verify token: oidc: expected audience "client" got ["other"]'),
        ({"audiences": ("b", "a")}, {}, 'oidc: verify token: oidc: expected audience in ["a" "b"] got ["client"]'),
        ({}, {"exp": NOW - 1}, f"{EXPIRED}2027-01-15 07:59:59 +0000 UTC)"),
        ({}, {"exp": "soon"}, f"{EXPIRED}0001-01-01 00:00:00 +0000 UTC)"),
        (
            {},
            {"nbf": NOW + 301},
            "oidc: verify token: oidc: current time 2027-01-15 08:00:00 +0000 UTC before the nbf (not before) time: "
            "2027-01-15 08:05:01 +0000 UTC",
        ),
        ({"username_claim": "name"}, {}, 'oidc: parse username claims "name": claim not present'),
        (
            {},
            {"sub": 7},
            'oidc: parse username claims "sub": json: cannot unmarshal number into Go value of type string',
        ),
        ({"username_claim": "email"}, {"email": "x", "email_verified": False}, "oidc: email not verified"),
        ({"required_claims": {"hd": "x"}}, {}, "oidc: required claim hd not present in ID token"),
        (
            {"required_claims": {"hd": "x"}},
            {"hd": "y"},
            "oidc: required claim hd value does not match. Got = y, want = x",
        ),
        (
            {"groups_claim": "g"},
            {"_claim_names": {"g": "s"}, "_claim_sources": {"s": {"endpoint": "https://x"}}},
            "oidc: could not expand distributed claims: they are not supported",
        ),
        (
            {"groups_claim": "g"},
            {"_claim_names": ["g"]},
            "oidc: could not expand distributed claims: oidc: error parsing distributed claim names",
        ),
        (
            {"groups_claim": "g"},
            {"_claim_names": {"other": "s"}},
            "oidc: could not expand distributed claims: oidc: no claim sources",
        ),
        (
            {"groups_claim": "g"},
            {"_claim_names": {"g": "s"}, "_claim_sources": {"s": "x"}},
            "oidc: could not expand distributed claims: oidc: could not parse claim sources",
        ),
        (
            {"groups_claim": "g"},
            {"_claim_names": {"g": "s"}, "_claim_sources": {}},
            "oidc: could not expand distributed claims: id token _claim_names contained a source s missing in "
            "_claims_sources",
        ),
        (
            {"groups_claim": "g"},
            {"g": [1]},
            'oidc: parse groups claim "g": json: cannot unmarshal array into Go value of type string',
        ),
        (
            {"algorithms": ("RS256",)},
            {},
            'oidc: verify token: oidc: id token signed with unsupported algorithm, expected ["RS256"] got "ES256"',
        ),
    ],
)
async def test_refusals(config, claims, error):
    issuer = Issuer()
    with pytest.raises(InvalidCredentials) as caught:
        await authenticator(issuer, **config).authenticate_token(issuer.token(**claims), ())
    assert str(caught.value) == error


@pytest.mark.parametrize("token", ["x", "a.b.c", ""])
async def test_other_tokens_are_no_opinion(token):
    issuer = Issuer()
    assert await authenticator(issuer).authenticate_token(token, ()) is None
    assert await authenticator(issuer).authenticate_token(issuer.token(iss="https://other"), ()) is None
    assert issuer.fetched == []


async def test_keys_are_fetched_once_and_again_when_they_rotate():
    issuer, now = Issuer(), [0.0]
    oidc = authenticator(issuer)
    oidc.keys._clock = lambda: now[0]
    tokens = [issuer.token(sub=str(number)) for number in range(5)]
    await asyncio.gather(*(oidc.authenticate_token(token, ()) for token in tokens))
    assert issuer.fetched == [f"{URL}/.well-known/openid-configuration", f"{URL}/keys"]
    issuer.key = new_key()
    with pytest.raises(InvalidCredentials, match="failed to verify id token signature"):
        await oidc.authenticate_token(issuer.token(), ())
    now[0] = 1.0
    assert await oidc.authenticate_token(issuer.token(), ())
    assert len(issuer.fetched) == 3
    with pytest.raises(InvalidCredentials, match="failed to verify id token signature"):
        await oidc.authenticate_token(Issuer().token(), ())


async def test_issuer_that_comes_up_later():
    issuer, now = Issuer(), [0.0]
    oidc = authenticator(issuer)
    oidc.keys._clock = lambda: now[0]
    issuer.down = True
    for _ in range(2):
        with pytest.raises(InvalidCredentials, match="oidc: authenticator not initialized"):
            await oidc.authenticate_token(issuer.token(), ())
    assert len(issuer.fetched) == 1
    assert "connection refused" in oidc.keys.error
    issuer.down, now[0] = False, 10.0
    assert await oidc.authenticate_token(issuer.token(), ())
    assert oidc.keys.error == ""


async def test_discovery_must_name_the_issuer():
    issuer = Issuer()
    issuer.issuer = "https://evil"
    oidc = authenticator(issuer, discovery_url="https://elsewhere/doc")
    with pytest.raises(InvalidCredentials, match="not initialized"):
        await oidc.authenticate_token(issuer.token(), ())
    assert issuer.fetched == ["https://elsewhere/doc"]


def test_algorithms():
    with pytest.raises(ValueError, match='oidc: unsupported signing alg: "HS256"'):
        authenticator(Issuer(), algorithms=("HS256",))


async def test_issuers_are_counted():
    issuer, metrics = Issuer(), AuthenticationMetrics("server")
    settings = TrustedIssuer(URL, audiences=("client",), username_claim="sub")
    oidc = OIDCAuthenticator(settings, issuer.fetch, ("ES256",), lambda: NOW, metrics)
    await oidc.authenticate_token(issuer.token(), ())
    with pytest.raises(InvalidCredentials):
        await oidc.authenticate_token(issuer.token(aud="other"), ())
    named = f'jwt_issuer_hash="{hashed(URL)}"'
    prefix = "apiserver_authentication_jwt_authenticator"
    page = render(metrics.instruments()).decode()
    assert f'{prefix}_latency_seconds_count{{result="success",{named}}} 1' in page
    assert f'{prefix}_latency_seconds_count{{result="failure",{named}}} 1' in page
    assert f'{prefix}_jwks_fetch_last_timestamp_seconds{{result="success",{named},' in page
    assert page.count(f"{prefix}_jwks_fetch_last_key_set_info{{{named}") == 1
