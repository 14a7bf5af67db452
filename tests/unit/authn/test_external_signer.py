"""Tokens signed elsewhere: what the service may answer, and what is made of it."""

import asyncio

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from pilothouse.authn import jose
from pilothouse.authn.external_signer import ExternalSigner, SigningFailed
from pilothouse.authn.metrics import SignerMetrics
from pilothouse.machinery.metrics import render
from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.net.unary_calls import CallFailed, go_name

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
NOW = 1_000_000.0


def pkix(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def nested(number, body):
    return messages.encode({number: body})


class Service:
    """Answers as a signer would; every part can be made wrong."""

    def __init__(self):
        self.keys = [{1: "first", 2: pkix(KEY)}, {1: "old", 2: pkix(OTHER), 3: 1}]
        self.hint, self.stamp, self.longest = 600, messages.encode({1: 5, 2: 500_000_000}), 7200
        self.header = {"alg": "ES256", "kid": "first", "typ": "JWT"}
        self.signature = "c2ln"
        self.away = False
        self.called = []

    async def call(self, method, body, seconds, *, wait_for_ready=False):
        self.called.append(method)
        await asyncio.sleep(0)
        if self.away:
            raise CallFailed("rpc error: code = Unavailable desc = gone", "Unavailable")
        if method == "FetchKeys":
            keys = b"".join(nested(1, messages.encode(key)) for key in self.keys)
            return keys + messages.encode({2: self.stamp, 3: self.hint})
        if method == "Metadata":
            return messages.encode({1: self.longest})
        header = self.header if isinstance(self.header, str) else jose.encode_base64url(orjson.dumps(self.header))
        return messages.encode({1: header, 2: self.signature})


@pytest.fixture
def service():
    return Service()


def signer_of(service, metrics=None):
    return ExternalSigner(service, metrics, lambda: NOW)


async def test_keys_limits_and_tokens(service):
    signer = signer_of(service)
    await signer.refresh()
    assert [key.id for key in signer.known_keys()] == ["first", "old"]
    assert [key.id for key in signer.shown_keys()] == ["first"]
    assert signer.max_age == 600
    assert await signer.longest_seconds() == 7200
    header, payload, signature = (await signer.sign_claims({"sub": "x"})).split(".")
    assert (orjson.loads(jose.decode_base64url(payload)), signature) == ({"sub": "x"}, "c2ln")
    assert orjson.loads(jose.decode_base64url(header)) == service.header


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hint": 0}, "found invalid refresh hint (0s)"),
        ({"hint": (1 << 64) - 5}, "found invalid refresh hint (-5s)"),
        ({"keys": []}, "found no keys"),
        ({"stamp": b""}, "invalid data timestamp"),
        ({"keys": [{1: "", 2: pkix(KEY)}]}, 'found invalid public key id ""'),
        ({"keys": [{1: "k" * 1025, 2: pkix(KEY)}]}, "found invalid public key id"),
        ({"keys": [{1: "k"}]}, "found empty public key"),
        ({"keys": [{1: "k", 2: b"no key"}]}, "while parsing external public keys"),
        ({"keys": [{1: "k", 2: pkix(ed25519.Ed25519PrivateKey.generate())}]}, "only RSA and ECDSA keys"),
        ({"away": True}, "while getting externally supported jwt signing keys: rpc error: code = Unavailable desc = g"),
    ],
)
async def test_wrong_keys_leave_the_old_ones(service, wrong, message):
    signer = signer_of(service)
    await signer.refresh()
    known = signer.known_keys()
    for name, value in wrong.items():
        setattr(service, name, value)
    with pytest.raises(SigningFailed) as failure:
        await signer.refresh()
    assert str(failure.value).startswith("while fetching token verification keys: ")
    assert message in str(failure.value)
    assert signer.known_keys() is known


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"header": {"alg": "ES256", "kid": "first"}}, "while validating header: bad type"),
        ({"header": {"alg": "ES256", "typ": "JWT"}}, "while validating header: key id missing"),
        ({"header": {"alg": "ES256", "typ": "JWT", "kid": "k" * 1025}}, "key id longer than 1 kb"),
        ({"header": {"alg": "HS256", "typ": "JWT", "kid": "first"}}, 'bad signing algorithm "HS256"'),
        ({"header": {"alg": "none", "typ": "JWT", "kid": "first"}}, 'bad signing algorithm "none"'),
        ({"header": {"alg": "ES256", "typ": "JWT", "kid": "first", "jku": "x"}}, 'json: unknown field "jku"'),
        ({"header": {"alg": "ES384", "typ": "JWT", "kid": "old"}}, "(kid: old) is excluded from OIDC discovery docs"),
        ({"header": "%%%"}, "while unwrapping header"),
        ({"header": jose.encode_base64url(b"[]")}, "while parsing header JSON"),
        ({"signature": ""}, "empty signature returned"),
        ({"away": True}, "while signing jwt: rpc error: code = Unavailable desc = gone"),
    ],
)
async def test_wrong_signatures(service, wrong, message):
    metrics = SignerMetrics()
    signer = signer_of(service, metrics)
    await signer.refresh()
    for name, value in wrong.items():
        setattr(service, name, value)
    with pytest.raises(SigningFailed) as failure:
        await signer.sign_claims({"sub": "x"})
    assert message in str(failure.value)
    code = "Unavailable" if "away" in wrong else "unknown-non-grpc"
    assert f'apiserver_externaljwt_sign_request_total{{code="{code}"}} 1' in render(metrics.instruments()).decode()


async def test_many_who_ask_at_once_share_an_answer(service):
    signer = signer_of(service)
    await asyncio.gather(*(signer.refresh() for _ in range(20)))
    assert service.called == ["FetchKeys"]
    await signer.refresh()
    assert service.called == ["FetchKeys"] * 2


async def test_a_new_key_is_found_and_an_absent_service_finds_none(service):
    signer = signer_of(service)
    await signer.find_key()
    assert len(signer.known_keys()) == 2
    service.away = True
    await signer.find_key()
    assert len(signer.known_keys()) == 2


@pytest.mark.parametrize(
    ("code", "name"),
    [("OK", "OK"), ("CANCELLED", "Canceled"), ("DEADLINE_EXCEEDED", "DeadlineExceeded"), ("UNKNOWN", "Unknown")],
)
def test_codes_have_their_go_names(code, name):
    assert go_name(code) == name
