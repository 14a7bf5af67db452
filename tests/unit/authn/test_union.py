"""The whole of authentication, and that nothing made up gets through it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.authn import jose
from pilothouse.authn.authentication_configuration import TrustedIssuer
from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.authn.token_request import TokenRequests
from pilothouse.authn.union import FrontProxy, Settings, build

ISSUER = "https://kubernetes.default.svc"
ACCOUNT = {"metadata": {"name": "bot", "namespace": "ns", "uid": "u"}}


class Objects:
    async def get(self, resource, namespace, name):
        return ACCOUNT if (resource, namespace, name) == ("serviceaccounts", "ns", "bot") else None


@pytest.fixture(scope="module")
def key():
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def configured(tmp_path, key, new_authority):
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    authority = new_authority()
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "tokens.csv").write_text("alicetoken,alice,alice-uid,devs\n")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "sa.pub").write_bytes(public)
    ca_file = str(tmp_path / "ca.crt")
    return Settings(
        front_proxy=FrontProxy(
            ca_file, ["aggregator"], ["X-Remote-User"], ["X-Remote-Uid"], ["X-Remote-Group"], ["X-Remote-Extra-"]
        ),
        client_ca_file=ca_file,
        token_file=str(tmp_path / "tokens.csv"),
        service_account_key_files=[str(tmp_path / "sa.pub")],
        service_account_issuers=[ISSUER],
        bootstrap_tokens=True,
    )


def token_for(key, clock):
    service = TokenRequests(ISSUER, jose.Signer(key), [ISSUER], Objects(), clock)

    async def issue():
        request = {}
        service.complete(request, ACCOUNT, "bot")
        return (await service.issue(request, ACCOUNT)).request["status"]["token"]

    return issue()


async def test_every_kind_of_credential(configured, key, make_request):
    import time

    found = build(configured, Objects())
    token = await token_for(key, time.time)
    for headers, name in (
        ("Authorization: Bearer alicetoken", "alice"),
        (f"Authorization: Bearer {token}", "system:serviceaccount:ns:bot"),
        ("", "system:anonymous"),
        ("X-Remote-User: root", "system:anonymous"),
    ):
        assert (await found.authenticator.authenticate(make_request(headers))).user.name == name
    assert found.audiences == (ISSUER,)
    with pytest.raises(InvalidCredentials, match="invalid bearer token"):
        await found.authenticator.authenticate(make_request("Authorization: Bearer nope"))


async def test_token_review_wording(configured, key, make_request):
    import time

    found = build(configured, Objects())
    token = await token_for(key, time.time)
    with pytest.raises(InvalidCredentials) as caught:
        await found.bearer.authenticate_header(f"Bearer {token}".encode(), ("vault",))
    assert str(caught.value) == (
        f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["vault"]]'
    )


async def test_changed_files_are_forgotten_about(configured, make_request):
    found = build(configured, Objects())
    request = make_request("Authorization: Bearer alicetoken")
    assert (await found.authenticator.authenticate(request)).user.name == "alice"
    assert found.poll_files() == []
    with open(configured.token_file, "w") as file:
        file.write("othertoken,bob,1,ops\n")
    assert found.poll_files() == [configured.token_file]
    with pytest.raises(InvalidCredentials):
        await found.authenticator.authenticate(
            make_request("Authorization: Bearer alicetoken", connection=request.connection)
        )


async def test_anonymous_can_be_off_or_limited(configured, make_request):
    configured.anonymous = False
    assert await build(configured, Objects()).authenticator.authenticate(make_request()) is None
    configured.anonymous, configured.anonymous_paths = True, ["/livez"]
    limited = build(configured, Objects()).authenticator
    assert await limited.authenticate(make_request(path="/livez")) is not None
    assert await limited.authenticate(make_request(path="/api")) is None


def test_what_cannot_be_built(configured, tmp_path):
    configured.oidc_issuers = [TrustedIssuer("https://a", ("x",), "sub")]
    with pytest.raises(ValueError):
        build(configured, Objects())
    with pytest.raises(OSError):
        build(Settings(client_ca_file=str(tmp_path / "none")), Objects())


names = st.sampled_from(
    [
        "Authorization",
        "X-Remote-User",
        "X-Remote-Group",
        "X-Remote-Extra-A",
        "Upgrade",
        "Connection",
        "Sec-WebSocket-Protocol",
    ]
)
values = st.one_of(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
    st.sampled_from(["websocket", "Upgrade", "system:masters", "base64url.bearer.authorization.k8s.io.YQ,a"]),
    st.builds("Bearer {}".format, st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)),
    st.builds("Bearer eyJhbGciOiJ{}.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.{}".format,
              st.sampled_from(["ub25lIn0", "FUzI1NiJ9", "IUzI1NiJ9"]), st.text("AQx_-", max_size=86)),
)  # fmt: skip


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(names, values), max_size=5))
async def test_made_up_headers_make_nobody(configured, make_request, headers):
    found = build(configured, Objects())
    request = make_request("\n".join(f"{name}: {value}" for name, value in headers))
    try:
        identity = await found.authenticator.authenticate(request)
    except InvalidCredentials:
        return
    assert identity.user.name == "system:anonymous"
    assert identity.user.groups == ("system:unauthenticated",)
