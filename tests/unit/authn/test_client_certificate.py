import contextlib
import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.authn.authenticator import InvalidCredentials, Union
from pilothouse.authn.certificate_chain import InvalidCertificate, parse_authorities, verify_chain
from pilothouse.authn.client_certificate import ClientCertificate, VerifiedCertificates
from pilothouse.authn.request_header import RequestHeader, unescape_key
from pilothouse.machinery.user import User
from pilothouse.machinery.watched_file import WatchedFile
from pilothouse.net.http1.head_reader import HeadReader
from pilothouse.net.messages import Connection, Request

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
CLIENT, SERVER, ANY = "1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.1", "2.5.29.37.0"


@pytest.fixture
def authority(new_authority):
    return new_authority()


@pytest.fixture
def certificates(authority, tmp_path):
    path = tmp_path / "ca.crt"
    path.write_bytes(authority.pem)
    clock = [NOW.timestamp()]
    verified = VerifiedCertificates(WatchedFile(str(path), parse_authorities), lambda: clock[0])
    verified.clock = clock
    verified.path = path
    return verified


async def test_identity_of_a_certificate(authority, certificates, make_request):
    der = authority.issue("alice", ("devs", "ops"), usages=(CLIENT,), uids=("u-1",))
    found = await ClientCertificate(certificates).authenticate(make_request(certificate=der))
    assert (found.user.name, found.user.uid, found.user.groups) == ("alice", "u-1", ("devs", "ops"))
    (credential,) = found.user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
    assert len(credential) == len("X509SHA256=") + 64


def odd_certificates():
    """Certificates that cryptography does not read, or not whole, as anybody may make them for himself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - DAY, NOW + DAY)

    def made(*extensions):
        filled = builder
        for oid, value in extensions:
            odd = x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), value)
            filled = filled.add_extension(odd, critical=False)
        return filled.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)

    twice = made(("1.2.3.4.17", b"\x05\x00"), ("1.2.3.4.18", b"\x05\x00"))
    return {
        "a name of a kind nobody knows": made(("2.5.29.17", b"\x30\x02\xa3\x00")),
        "an extension that stands twice": twice.replace(b"\x2a\x03\x04\x12", b"\x2a\x03\x04\x11"),
        "a version that there is not": made().replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x06"),
    }


@pytest.mark.parametrize("what", odd_certificates())
async def test_odd_certificates_of_strangers_are_refused(certificates, make_request, what):
    with pytest.raises(InvalidCredentials, match="x509: malformed"):
        await ClientCertificate(certificates).authenticate(make_request(certificate=odd_certificates()[what]))


async def test_no_certificate_and_no_common_name_are_no_opinion(authority, certificates, make_request):
    authenticator = ClientCertificate(certificates)
    assert await authenticator.authenticate(make_request()) is None
    assert await authenticator.authenticate(make_request(certificate=authority.issue("", ("devs",)))) is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"usages": (SERVER,)}, "x509: certificate specifies an incompatible key usage"),
        ({"before": NOW + DAY / 2}, "expired or is not yet valid: current time 2026-01-01T00:00:00Z is before 2026"),
        ({"before": NOW - 2 * DAY, "after": NOW - DAY}, "time 2026-01-01T00:00:00Z is after 2025-12-31T00:00:00Z"),
        ({"critical": "1.2.3.4"}, "x509: unhandled critical extension"),
        ({"uids": ("a", "b")}, r"expected 1 UID, but found multiple: \[a b\]"),
    ],
)
async def test_refusals(authority, certificates, make_request, options, error):
    with pytest.raises(InvalidCredentials, match=error):
        await ClientCertificate(certificates).authenticate(
            make_request(certificate=authority.issue("alice", **options))
        )


async def test_usage_any_is_enough_and_none_is_unlimited(authority, certificates, make_request):
    for usages in (None, (ANY,), (SERVER, CLIENT)):
        der = authority.issue("alice", usages=usages)
        assert await ClientCertificate(certificates).authenticate(make_request(certificate=der))


async def test_unknown_authority_even_with_the_same_name(new_authority, certificates, make_request):
    der = new_authority().issue("alice")
    with pytest.raises(InvalidCredentials, match=r"SN=7.* failed: x509: certificate signed by unknown authority"):
        await ClientCertificate(certificates).authenticate(make_request(certificate=der))


async def test_garbage_is_refused(certificates, make_request):
    with pytest.raises(InvalidCredentials, match="malformed"):
        await ClientCertificate(certificates).authenticate(make_request(certificate=b"\x30\x03abc"))


async def test_a_clock_that_is_set_right_again_makes_certificates_good_again(authority, certificates, make_request):
    authenticator = ClientCertificate(certificates)
    request = make_request(certificate=authority.issue("alice"))
    for wrong in (1000 * DAY, -1000 * DAY):
        certificates.clock[0] = (NOW + wrong).timestamp()
        with pytest.raises(InvalidCredentials, match="expired or is not yet valid"):
            await authenticator.authenticate(request)
        certificates.clock[0] = NOW.timestamp()
        assert (await authenticator.authenticate(request)).user.name == "alice"


async def test_outcome_is_kept_until_expiry_or_new_authorities(authority, new_authority, certificates, make_request):
    authenticator = ClientCertificate(certificates)
    request = make_request(certificate=authority.issue("alice"))
    first = await authenticator.authenticate(request)
    assert await authenticator.authenticate(request) is first
    certificates.clock[0] += DAY.total_seconds() + 1
    with pytest.raises(InvalidCredentials, match="expired"):
        await authenticator.authenticate(request)
    certificates.clock[0] = NOW.timestamp()
    request = make_request(certificate=authority.issue("alice"))
    await authenticator.authenticate(request)
    certificates.path.write_bytes(new_authority("other").pem)
    assert certificates.authorities.poll()
    with pytest.raises(InvalidCredentials, match="unknown authority"):
        await authenticator.authenticate(request)


def load(der):
    from cryptography import x509

    return x509.load_der_x509_certificate(der)


def test_chains_with_intermediates(new_authority):
    root = new_authority("root", path_length=1)
    middle = new_authority("middle", root)
    lower = new_authority("lower", middle)
    roots = parse_authorities(root.pem)
    leaf = load(middle.issue("alice"))
    assert len(verify_chain(leaf, [middle.certificate], roots, NOW)) == 3
    with pytest.raises(InvalidCertificate, match="unknown authority"):
        verify_chain(leaf, [], roots, NOW)
    with pytest.raises(InvalidCertificate, match="too many intermediates"):
        verify_chain(load(lower.issue("bob")), [middle.certificate, lower.certificate], roots, NOW)


def test_usages_nest_and_a_leaf_cannot_sign(new_authority):
    root = new_authority("root")
    limited = new_authority("limited", root, usages=(SERVER,))
    roots = parse_authorities(root.pem)
    with pytest.raises(InvalidCertificate, match="incompatible key usage"):
        verify_chain(load(limited.issue("alice", usages=(CLIENT,))), [limited.certificate], roots, NOW)
    impostor = new_authority("impostor", root)
    impostor.certificate = load(root.issue("impostor"))
    with pytest.raises(InvalidCertificate):
        verify_chain(load(impostor.issue("alice")), [impostor.certificate], roots, NOW)


def test_expired_root_and_pinned_leaf(new_authority):
    old = new_authority("old", before=NOW - 2 * DAY, after=NOW - DAY)
    with pytest.raises(InvalidCertificate, match="expired"):
        verify_chain(load(old.issue("alice")), [], parse_authorities(old.pem), NOW)
    leaf = new_authority("self")
    assert verify_chain(leaf.certificate, [], parse_authorities(leaf.pem), NOW) == [leaf.certificate]


def test_empty_bundle():
    with pytest.raises(ValueError, match="does not contain any valid"):
        parse_authorities(b"hello")


def proxy(certificates, allowed=("aggregator",)):
    return RequestHeader(
        certificates, allowed, ["X-Remote-User", "X-Other"], ["X-Remote-Uid"], ["X-Remote-Group"], ["X-Remote-Extra-"]
    )


async def test_front_proxy_names_the_user(authority, certificates, make_request):
    headers = (
        "X-Remote-User: alice\nX-Remote-Uid: 7\nX-Remote-Group: a\nX-Remote-Group: \nX-Remote-Group: b\n"
        "X-Remote-Extra-Acme.com%2Fproject: one\nX-Remote-Extra-Scopes: x\nX-Remote-Extra-Scopes: y\nX-Keep: k"
    )
    request = make_request(headers, certificate=authority.issue("aggregator"))
    found = await proxy(certificates).authenticate(request)
    assert found.user == User("alice", "7", ("a", "b"), {"acme.com/project": ("one",), "scopes": ("x", "y")})
    assert set(request.headers) == {b"host", b"x-keep"}


async def test_front_proxy_names_others_in_blocks_that_differ_at_their_ends(authority, certificates, make_request):
    trusted, reader = proxy(certificates), HeadReader(4096)
    first = make_request("", certificate=authority.issue("aggregator"))

    async def named(*ends):
        lines = ["GET / HTTP/1.1", "Host: a", "X-Remote-User: alice", "X-Remote-Group: a", "X-Remote-Group: b", *ends]
        reader.feed("\r\n".join([*lines, "", ""]).encode())
        request = Request(first.connection, *reader.next_head(), True, None)
        found = await trusted.authenticate(request)
        assert not [name for name in request.headers if name.startswith(b"x-remote-")]
        return found.user

    users = [await named("X-Remote-Uid: 1", f"Audit-Id: {number}") for number in range(4)]
    assert users == [User("alice", "1", ("a", "b"))] * 4
    assert await named("X-Remote-Uid: 2", "Audit-Id: 5") == User("alice", "2", ("a", "b"))
    assert await named("X-Remote-Uid: 1", "Audit-Id: 6") is users[0]
    assert await named("X-Remote-Extra-A: x", "Audit-Id: 7") == User("alice", "", ("a", "b"), {"a": ("x",)})
    assert await named("X-Remote-Group: c", "Audit-Id: 8") == User("alice", "", ("a", "b", "c"))
    assert await named("Audit-Id: 9") == User("alice", "", ("a", "b"))


async def test_front_proxy_names_the_same_user_again(authority, certificates, make_request):
    der, trusted = authority.issue("aggregator"), proxy(certificates)

    async def named(headers):
        request = make_request(headers, certificate=der)
        found = await trusted.authenticate(request)
        assert set(request.headers) == {b"host"}
        return found

    alice = await named("X-Remote-User: alice\nX-Remote-Group: a")
    assert await named("X-Remote-User: alice\nX-Remote-Group: a") is alice
    others = [
        "X-Remote-User: alice\nX-Remote-Group: a\nX-Remote-Group: b",
        "X-Remote-User: alice\nX-Remote-Uid: a",
        "X-Other: alice\nX-Remote-Group: a\nX-Remote-Extra-A: a",
        "X-Remote-User: alice\nX-Remote-Group: a\nX-Remote-Extra-A: " + "x" * 10_000,
    ]
    users = [(await named(each)).user for each in others]
    assert [user.groups for user in users] == [("a", "b"), (), ("a",), ("a",)]
    assert [user.uid for user in users] == ["", "a", "", ""]
    assert [len(user.extra.get("a", ("",))[0]) for user in users] == [0, 0, 1, 10_000]


async def test_front_proxy_is_recalled_while_nothing_changes(authority, new_authority, certificates, make_request):
    trusted, reader = proxy(certificates), HeadReader(4096)
    union = Union([trusted], recall_named=trusted.recall)
    known = make_request(certificate=authority.issue("aggregator")).connection

    def request(name, connection=known):
        reader.feed(f"GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User: {name}\r\nX-Remote-Group: a\r\n\r\n".encode())
        return Request(connection, *reader.next_head(), True, None)

    assert union.recall(request("alice")) is None
    alice = await union.authenticate(request("alice"))
    again = request("alice")
    assert union.recall(again) is alice
    assert set(again.headers) == {b"host"}
    others = [make_request().connection, make_request(certificate=authority.issue("eve")).connection]
    assert [union.recall(request("alice", each)) for each in others] == [None, None]
    assert union.recall(request("bob")) is None
    assert (await union.authenticate(request("bob"))).user.name == "bob"
    await union.authenticate(request("alice"))
    certificates.clock[0] += DAY.total_seconds() + 1
    assert union.recall(request("alice")) is None
    certificates.clock[0] = NOW.timestamp()
    assert (await union.authenticate(request("alice"))).user == alice.user
    certificates.path.write_bytes(new_authority("other").pem)
    assert certificates.authorities.poll()
    assert union.recall(request("alice")) is None
    with pytest.raises(InvalidCredentials, match="unknown authority"):
        await union.authenticate(request("alice"))


async def test_front_proxy_must_be_known(authority, new_authority, certificates, make_request):
    headers = "X-Remote-User: root\nX-Remote-Group: system:masters"
    with pytest.raises(InvalidCredentials, match="x509: subject with cn=eve is not in the allowed list"):
        await proxy(certificates).authenticate(make_request(headers, certificate=authority.issue("eve")))
    with pytest.raises(InvalidCredentials, match="unknown authority"):
        await proxy(certificates).authenticate(make_request(headers, certificate=new_authority().issue("aggregator")))
    assert await proxy(certificates).authenticate(make_request(headers)) is None
    assert await proxy(certificates, ()).authenticate(make_request(headers, certificate=authority.issue("eve")))


async def test_front_proxy_without_a_name_has_no_opinion(authority, certificates, make_request):
    der = authority.issue("aggregator")
    assert await proxy(certificates).authenticate(make_request("X-Remote-Group: a", certificate=der)) is None
    found = await proxy(certificates).authenticate(make_request("X-Remote-User: \nX-Other: bob", certificate=der))
    assert found.user.name == "bob"


@pytest.mark.parametrize(("key", "plain"), [("a%2fb", "a/b"), ("a%2", "a%2"), ("%25", "%"), ("a", "a")])
def test_unescape_key(key, plain):
    assert unescape_key(key) == plain


def write(path, content):
    path.write_bytes(content)
    return str(path)


def shake_hands(client, server):
    for _ in range(6):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()


def test_intermediates_come_from_the_handshake(new_authority, tmp_path):
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as s

    now = datetime.datetime.now(datetime.UTC)
    valid = {"before": now - DAY, "after": now + DAY}
    root = new_authority("root", **valid)
    middle = new_authority("middle", root, **valid)
    key = middle.key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    ca_file = write(tmp_path / "ca.crt", root.pem)
    key_file = write(tmp_path / "key.pem", key)
    chain_file = write(tmp_path / "chain.crt", middle.pem + root.pem)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(chain_file, key_file)
    server_side.load_verify_locations(ca_file)
    server_side.verify_mode = ssl.CERT_OPTIONAL
    client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_side.check_hostname, client_side.verify_mode = False, ssl.CERT_NONE
    client_side.load_cert_chain(chain_file, key_file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    shake_hands(client_side.wrap_bio(to_client, to_server), server)

    class Transport:
        def get_extra_info(self, name):
            return server if name == "ssl_object" else None

    connection = Connection(Transport())
    sent = [x509.load_der_x509_certificate(der) for der in connection.peer_chain]
    assert sent == [middle.certificate, root.certificate]
    certificates = VerifiedCertificates(WatchedFile(ca_file, parse_authorities))
    assert certificates.verified(connection) == middle.certificate
