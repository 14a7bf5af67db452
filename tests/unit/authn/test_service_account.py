import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authn import jose, openid_metadata
from pilothouse.authn.authenticator import InvalidCredentials, TokenUnion
from pilothouse.authn.bearer import Bearer
from pilothouse.authn.service_account import BoundTokens, LegacyTokens, last_used_label
from pilothouse.authn.token_cache import TokenCache
from pilothouse.authn.token_request import TokenRequests, check_names, validate
from pilothouse.machinery.errors import StatusError

ISSUER = "https://kubernetes.default.svc"
NOW = 1_800_000_000
_CONFIG_MAP = "cannot bind token to object of type /v1, Kind=ConfigMap"


def new_key(kind="ES256"):
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if kind == "RS256":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[kind])


KEY = new_key()
PUBLIC = [jose.VerificationKey(jose.key_id(KEY.public_key()), KEY.public_key())]


class Objects(dict):
    """Objects by resource, namespace and name."""

    async def get(self, resource, namespace, name):
        return dict.get(self, (resource, namespace, name))

    def add(self, resource, namespace, name, uid="u", **more):
        metadata = {"name": name, "uid": uid, **({"namespace": namespace} if namespace else {})}
        self[resource, namespace, name] = {"metadata": metadata, **more}
        return self[resource, namespace, name]


@pytest.fixture
def objects():
    objects = Objects()
    objects.add("serviceaccounts", "ns", "bot", "sa-uid")
    objects.add("pods", "ns", "p", "pod-uid", spec={"serviceAccountName": "bot", "nodeName": "n"})
    objects.add("secrets", "ns", "s", "secret-uid")
    objects.add("nodes", "", "n", "node-uid")
    return objects


def requests(objects, **options):
    return TokenRequests(ISSUER, jose.Signer(KEY), [ISSUER], objects, lambda: NOW, new_id=lambda: "id-1", **options)


def verifier(objects, now=NOW, keys=PUBLIC, audiences=(ISSUER,)):
    return BoundTokens([ISSUER, "https://old"], lambda: keys, audiences, objects, lambda: now)


async def issue(objects, spec=None, account="bot", **options):
    service = requests(objects, **options)
    request = {"spec": spec or {}}
    held = objects["serviceaccounts", "ns", account]
    service.complete(request, held, account)
    return await service.issue(request, held)


def claims(token):
    return json.loads(jose.decode_base64url(token.split(".")[1]))


@pytest.mark.parametrize("kind", ["RS256", "ES256", "ES384", "ES512"])
def test_sign_and_verify(kind):
    key = new_key(kind)
    signer = jose.Signer(key)
    token = jose.parse_token(signer.sign({"a": 1}))
    assert token.header == {"alg": kind, "kid": jose.key_id(key.public_key())}
    jose.verify(token, key.public_key())
    known = jose.from_jwk(jose.as_jwk(jose.VerificationKey("k", key.public_key())))
    assert known.id == "k"
    jose.verify(token, known.key)
    with pytest.raises(jose.InvalidToken):
        jose.verify(token, new_key(kind).public_key())


@pytest.mark.parametrize("algorithm", ["none", "HS256", "ES384", "RS256", None, 7, ["ES256"]])
def test_algorithm_is_the_keys_choice(algorithm):
    head = jose.encode_base64url(json.dumps({"alg": algorithm}).encode())
    token = jose.parse_token(f"{head}.e30.{'A' * 86}")
    with pytest.raises(jose.InvalidToken, match="unknown/unsupported algorithm"):
        jose.verify(token, KEY.public_key())


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text):
    for token in (text, f"{text}.{text}.{text}", f"e30.{text}.", f"bnVsbA.{text}.AA"):
        parsed = jose.parse_token(token)
        assert parsed is None or isinstance(parsed.header, dict)


def test_pem_files(new_authority):
    from cryptography.hazmat.primitives import serialization as s

    rsa = new_key("RS256")
    private = rsa.private_bytes(s.Encoding.PEM, s.PrivateFormat.TraditionalOpenSSL, s.NoEncryption())
    pkcs8 = KEY.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    public = KEY.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    authority = new_authority()
    found = jose.load_public_keys(b"# comment\n" + private + public + authority.pem + pkcs8)
    wanted = [rsa.public_key(), KEY.public_key(), authority.certificate.public_key(), KEY.public_key()]
    assert [key.key for key in found] == wanted
    assert jose.load_private_key(public + pkcs8).public_key() == KEY.public_key()
    with pytest.raises(ValueError, match="does not contain any valid RSA or ECDSA public keys"):
        jose.load_public_keys(b"-----BEGIN X-----\nAA==\n-----END X-----\n")
    with pytest.raises(ValueError, match="does not contain a valid RSA or ECDSA private key"):
        jose.load_private_key(public)


async def test_claims_of_a_plain_token(objects):
    issued = await issue(objects)
    assert claims(issued.request["status"]["token"]) == {
        "aud": [ISSUER], "exp": NOW + 3600, "iat": NOW, "nbf": NOW, "iss": ISSUER, "jti": "id-1",
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "bot", "uid": "sa-uid"}},
        "sub": "system:serviceaccount:ns:bot",
    }  # fmt: skip
    assert issued.request["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"
    assert issued.request["metadata"] == {
        "name": "bot", "namespace": "ns", "uid": "sa-uid", "creationTimestamp": "2027-01-15T08:00:00Z"}  # fmt: skip
    assert (issued.warnings, issued.credential_id) == ((), "JTI=id-1")


@pytest.mark.parametrize(
    ("reference", "bound", "extra"),
    [
        (
            {"kind": "Pod", "apiVersion": "v1", "name": "p"},
            {"pod": {"name": "p", "uid": "pod-uid"}, "node": {"name": "n", "uid": "node-uid"}},
            {"pod-name": "p", "pod-uid": "pod-uid", "node-name": "n", "node-uid": "node-uid"},
        ),
        (
            {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "secret-uid"},
            {"secret": {"name": "s", "uid": "secret-uid"}},
            {},
        ),
        (
            {"kind": "Node", "apiVersion": "v1", "name": "n"},
            {"node": {"name": "n", "uid": "node-uid"}},
            {"node-name": "n", "node-uid": "node-uid"},
        ),
    ],
)
async def test_bound_tokens_hold_until_their_object_goes(objects, reference, bound, extra):
    token = (await issue(objects, {"boundObjectRef": reference})).request["status"]["token"]
    private = claims(token)["kubernetes.io"]
    assert {key: private[key] for key in private if key not in ("namespace", "serviceaccount")} == bound
    found = await verifier(objects).authenticate_token(token, (ISSUER,))
    assert found.user.name == "system:serviceaccount:ns:bot"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    extra = {f"authentication.kubernetes.io/{key}": (value,) for key, value in extra.items()}
    assert found.user.extra == {**extra, "authentication.kubernetes.io/credential-id": ("JTI=id-1",)}
    word = reference["kind"].lower()
    key = (f"{word}s", "" if word == "node" else "ns", reference["name"])
    kept = objects.pop(key)
    with pytest.raises(InvalidCredentials, match="service account token has been invalidated"):
        await verifier(objects).authenticate_token(token, ())
    objects[key] = {"metadata": {**kept["metadata"], "uid": "new"}}
    with pytest.raises(InvalidCredentials, match=rf"{word} UID \(new\) does not match service account {word} ref"):
        await verifier(objects).authenticate_token(token, ())
    objects[key] = {"metadata": {**kept["metadata"], "deletionTimestamp": "2027-01-15T07:59:30Z"}}
    assert await verifier(objects).authenticate_token(token, ())
    with pytest.raises(InvalidCredentials, match="invalidated"):
        await verifier(objects, NOW + 31).authenticate_token(token, ())


async def test_pod_of_a_missing_node_still_names_it(objects):
    del objects["nodes", "", "n"]
    token = (await issue(objects, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v9", "name": "p"}})).request
    assert claims(token["status"]["token"])["kubernetes.io"]["node"] == {"name": "n"}


@pytest.mark.parametrize(
    ("reference", "code", "message"),
    [
        ({"kind": "Pod", "apiVersion": "v1", "name": "q"}, 404, 'pods "q" not found'),
        ({"kind": "Node", "apiVersion": "v1", "name": "q"}, 404, 'nodes "q" not found'),
        (
            {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "1"},
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (1) does not match the '
            "UID in record. The object might have been deleted and then recreated",
        ),
        ({"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}, 400, _CONFIG_MAP),
        ({}, 400, "cannot bind token to object of type /, Kind="),
    ],
)
async def test_references_that_cannot_be_bound(objects, reference, code, message):
    with pytest.raises(StatusError) as caught:
        await issue(objects, {"boundObjectRef": reference})
    assert (caught.value.code, caught.value.message) == (code, message)


async def test_pod_of_another_account(objects):
    objects.add("serviceaccounts", "ns", "other")
    with pytest.raises(StatusError) as caught:
        await issue(objects, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}, "other")
    assert caught.value.message == (
        'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.'
    )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"spec": {"expirationSeconds": 599}},
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not '
            "specify a duration less than 10 minutes",
        ),
        (
            {"spec": {"expirationSeconds": 4294967297}},
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may '
            "not specify a duration larger than 2^32 seconds",
        ),
        (
            {"metadata": {"uid": "x"}},
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": the UID in the token request '
            "(x) does not match the UID of the service account (sa-uid)",
        ),
    ],
)
def test_requests_that_are_wrong(objects, request_, message):
    with pytest.raises(StatusError) as caught:
        requests(objects).complete(request_, objects["serviceaccounts", "ns", "bot"], "bot")
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"name": "bot", "namespace": "ns"}, None),
        ({"name": "other"}, 'metadata.name: Invalid value: "other": must match the service account name if specified'),
        (
            {"namespace": "x"},
            'metadata.namespace: Invalid value: "x": must match the service account namespace if specified',
        ),
    ],
)
def test_names_in_the_body_match_the_path(metadata, message):
    if message is None:
        check_names(metadata, "bot", "ns")
        return
    with pytest.raises(StatusError) as caught:
        check_names(metadata, "bot", "ns")
    assert caught.value.message == f'TokenRequest.authentication.k8s.io "bot" is invalid: {message}'


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Name parameter required."),
        ("..", "Name parameter invalid: \"..\": may not be '..'"),
        ("a/b", "Name parameter invalid: \"a/b\": may not contain '/'"),
    ],
)
async def test_names_of_bound_objects_fit_into_a_path(objects, name, message):
    with pytest.raises(StatusError) as caught:
        await issue(objects, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name}})
    assert (caught.value.code, caught.value.message) == (400, message)


async def test_lifetimes(objects):
    short = await issue(objects, {"expirationSeconds": 7200}, max_seconds=3600)
    assert short.warnings == ("requested expiration of 7200 seconds shortened to 3600 seconds",)
    assert short.request["spec"]["expirationSeconds"] == 3600
    mounted = {"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}
    token = (await issue(objects, mounted)).request["status"]["token"]
    assert claims(token)["exp"] == NOW + 365 * 86400
    assert claims(token)["kubernetes.io"]["warnafter"] == NOW + 3607
    early = await verifier(objects).authenticate_token(token, ())
    late = await verifier(objects, NOW + 4000).authenticate_token(token, ())
    assert early.annotations == ()
    assert late.annotations == (
        ("authentication.k8s.io/stale-token",
         "subject: system:serviceaccount:ns:bot, seconds after warning threshold: 393"),
    )  # fmt: skip
    token = (await issue(objects, mounted, extend=False)).request["status"]["token"]
    assert claims(token)["exp"] == NOW + 3607
    token = (await issue(objects, {**mounted, "audiences": ["vault"]})).request["status"]["token"]
    assert claims(token)["exp"] == NOW + 3607


@pytest.mark.parametrize(
    ("held", "asked", "got"),
    [
        ([], (), (ISSUER,)),
        (["vault"], ("vault",), ("vault",)),
        (["a", "b"], ("c", "b"), ("b",)),
    ],
)
async def test_audiences(objects, held, asked, got):
    token = (await issue(objects, {"audiences": held})).request["status"]["token"]
    assert (await verifier(objects).authenticate_token(token, asked)).audiences == got


@pytest.mark.parametrize(("held", "asked"), [(["vault"], ()), ([], ("vault",))])
async def test_wrong_audiences(objects, held, asked):
    token = (await issue(objects, {"audiences": held})).request["status"]["token"]
    with pytest.raises(InvalidCredentials) as caught:
        await verifier(objects).authenticate_token(token, asked)
    held, asked = held or [ISSUER], asked or [ISSUER]
    assert str(caught.value) == f'token audiences ["{held[0]}"] is invalid for the target audiences ["{asked[0]}"]'


@pytest.mark.parametrize(
    ("now", "error"),
    [
        (NOW - 61, "is not valid yet"),
        (NOW + 3661, "has expired"),
        (NOW - 60, ""),
        (NOW + 3660, ""),
    ],
)
async def test_times(objects, now, error):
    token = (await issue(objects)).request["status"]["token"]
    if not error:
        assert await verifier(objects, now).authenticate_token(token, ())
        return
    with pytest.raises(InvalidCredentials, match=error):
        await verifier(objects, now).authenticate_token(token, ())


async def test_keys_are_chosen_by_id(objects):
    token = (await issue(objects)).request["status"]["token"]
    other = new_key("RS256").public_key()
    stranger = jose.VerificationKey(jose.key_id(other), other)
    assert await verifier(objects, keys=[stranger, *PUBLIC]).authenticate_token(token, ())
    with pytest.raises(InvalidCredentials, match="invalid signature, no keys found"):
        await verifier(objects, keys=[stranger]).authenticate_token(token, ())
    forged = jose.VerificationKey(PUBLIC[0].id, new_key().public_key())
    with pytest.raises(InvalidCredentials, match="error in cryptographic primitive"):
        await verifier(objects, keys=[forged]).authenticate_token(token, ())


async def test_tampering_is_noticed(objects):
    head, payload, signature = (await issue(objects)).request["status"]["token"].split(".")
    changed = claims(f"{head}.{payload}.x")
    changed["sub"] = "system:serviceaccount:kube-system:admin"
    payload = jose.encode_base64url(json.dumps(changed).encode())
    with pytest.raises(InvalidCredentials, match="cryptographic primitive"):
        await verifier(objects).authenticate_token(f"{head}.{payload}.{signature}", ())


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "e30.e30.e30", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0."])
async def test_other_tokens_are_no_opinion(objects, token):
    assert await verifier(objects).authenticate_token(token, ()) is None


async def test_account_must_still_be_the_same(objects):
    token = (await issue(objects)).request["status"]["token"]
    objects.add("serviceaccounts", "ns", "bot", "again")
    with pytest.raises(InvalidCredentials, match=r"service account UID \(again\) does not match claim \(sa-uid\)"):
        await verifier(objects).authenticate_token(token, ())
    del objects["serviceaccounts", "ns", "bot"]
    with pytest.raises(InvalidCredentials, match='serviceaccounts "bot" not found'):
        await verifier(objects).authenticate_token(token, ())


PREFIX = "kubernetes.io/serviceaccount/"


def legacy(**changes):
    held = {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:ns:bot",
        PREFIX + "namespace": "ns",
        PREFIX + "secret.name": "t",
        PREFIX + "service-account.name": "bot",
        PREFIX + "service-account.uid": "sa-uid",
    }
    return jose.Signer(KEY).sign({**held, **changes})


def keep(objects, token, **metadata):
    secret = objects.add("secrets", "ns", "t", data={"token": base64.b64encode(token.encode()).decode()})
    secret["metadata"].update(metadata)


async def test_legacy_token(objects):
    token, used = legacy(), []
    keep(objects, token)
    tokens = LegacyTokens(lambda: PUBLIC, [ISSUER], objects, used.append)
    found = await tokens.authenticate_token(token, (ISSUER,))
    assert (found.user.name, found.user.uid, found.user.extra) == ("system:serviceaccount:ns:bot", "sa-uid", {})
    assert (found.warnings, len(used)) == ((), 1)
    assert found.annotations[-1] == ("authentication.k8s.io/legacy-token-manual-secret", "t")
    objects["serviceaccounts", "ns", "bot"]["secrets"] = [{"name": "t"}]
    found = await tokens.authenticate_token(token, ())
    assert found.warnings[0].startswith("Use tokens from the TokenRequest API")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"sub": ""}, "sub claim is missing"),
        ({PREFIX + "namespace": ""}, "namespace claim is missing"),
        ({PREFIX + "secret.name": ""}, "secretName claim is missing"),
        ({PREFIX + "service-account.uid": ""}, "serviceAccountUID claim is missing"),
        ({"sub": "system:serviceaccount:ns:root"}, "sub claim is invalid"),
    ],
)
async def test_legacy_claims(objects, changes, error):
    token = legacy(**changes)
    keep(objects, token)
    with pytest.raises(InvalidCredentials, match=error):
        await LegacyTokens(lambda: PUBLIC, [ISSUER], objects).authenticate_token(token, ())


async def test_legacy_secret_must_hold_the_token(objects):
    token, tokens = legacy(), LegacyTokens(lambda: PUBLIC, [ISSUER], objects)
    with pytest.raises(InvalidCredentials, match="Token has been invalidated"):
        await tokens.authenticate_token(token, ())
    keep(objects, token + "x")
    with pytest.raises(InvalidCredentials, match="Token does not match server's copy"):
        await tokens.authenticate_token(token, ())
    keep(objects, token, deletionTimestamp="2027-01-15T07:59:30Z")
    with pytest.raises(InvalidCredentials, match="Token has been invalidated"):
        await tokens.authenticate_token(token, ())
    keep(objects, token, labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
    with pytest.raises(InvalidCredentials, match="has been marked invalid") as refusal:
        await tokens.authenticate_token(token, ())
    note = ("authentication.k8s.io/legacy-token-invalidated", "t/ns")
    assert refusal.value.annotations == (note,)
    # Audit learns of it through everything that stands in between.
    with pytest.raises(InvalidCredentials) as refusal:
        await Bearer(TokenCache(TokenUnion([tokens]))).authenticate_header(f"Bearer {token}".encode(), ())
    assert refusal.value.annotations == (note,)
    assert await LegacyTokens(lambda: PUBLIC, [ISSUER], None).authenticate_token(token, ())


@pytest.mark.parametrize(
    ("known", "label"), [(None, "2027-01-15"), ("2027-01-15", ""), ("2027-01-16", ""), ("2027-01-14", "2027-01-15")]
)
def test_last_used_label(known, label):
    labels = {"kubernetes.io/legacy-token-last-used": known} if known else None
    assert last_used_label({"metadata": {"labels": labels}}, NOW) == label


def test_openid_documents():
    document = json.loads(openid_metadata.build_configuration(ISSUER, "", "host:6443", PUBLIC))
    assert document == {
        "issuer": ISSUER,
        "jwks_uri": "https://host:6443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    (key,) = json.loads(openid_metadata.build_key_set(PUBLIC))["keys"]
    assert (key["kid"], key["kty"], key["crv"], key["use"]) == (PUBLIC[0].id, "EC", "P-256", "sig")


@pytest.mark.parametrize(
    ("issuer", "error"),
    [
        ("", "empty issuer URL"),
        ("kubernetes/serviceaccount", "must use https scheme"),
        ("https://x?a", "may not include a query"),
        ("https://x#a", "may not include a fragment"),
    ],
)
def test_issuers_without_discovery(issuer, error):
    with pytest.raises(ValueError, match=error):
        openid_metadata.build_configuration(issuer, "", "x", PUBLIC)


@pytest.mark.parametrize(
    ("attestations", "error"),
    [
        ({"admissionReviewAPIGroups": ["*"]}, ""),
        ({"admissionReviewAPIGroups": ["apps"]}, ""),
        ({}, "webhook bound requests require exactly one admissionReviewAPIGroups attestation"),
        ({"a": ["x"], "b": ["y"]}, "webhook bound requests require exactly one admissionReviewAPIGroups attestation"),
        ({"other": ["x"]}, 'supported values: "admissionReviewAPIGroups"'),
        ({"admissionReviewAPIGroups": ["a", "b"]}, "must specify a single value"),
        ({"admissionReviewAPIGroups": [""]}, "may not be an empty string"),
        ({"admissionReviewAPIGroups": ["A_b"]}, "must specify a valid API Group: a lowercase RFC 1123 subdomain"),
    ],
)
def test_attestations_of_webhook_tokens(attestations, error):
    bound = {"kind": "MutatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1", "name": "w"}
    spec = {"expirationSeconds": 600, "audiences": ["a"], "boundObjectRef": bound, "attestations": attestations}
    errs = [str(each) for each in validate({"spec": spec})]
    assert (not errs) if not error else error in errs[0]
