import asyncio
import socket

import pytest

from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.storage.backends.contract import Unavailable, UnusableStore
from pilothouse.storage.backends.etcd import EtcdBackend, EtcdSettings, Transport
from pilothouse.storage.backends.etcd.connection import Connection, Endpoint, parse_endpoint
from pilothouse.storage.backends.etcd.errors import CallFailed
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd

_UNAVAILABLE = "rpc error: code = Unavailable desc ="
needs_etcd = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")


@pytest.mark.parametrize(
    ("server", "endpoint"),
    [
        ("http://127.0.0.1:2379", Endpoint("127.0.0.1", 2379)),
        ("https://etcd.example.com:2379", Endpoint("etcd.example.com", 2379, tls=True)),
        ("http://[::1]:2379", Endpoint("::1", 2379)),
        ("https://etcd", Endpoint("etcd", 443, tls=True)),
        ("localhost:2379", Endpoint("localhost", 2379)),
        ("unix:///run/etcd.sock", Endpoint("localhost", 0, "/run/etcd.sock")),
        ("unixs://localhost:1", Endpoint("localhost", 0, "localhost:1", tls=True)),
    ],
)
def test_names_of_servers(server, endpoint):
    assert parse_endpoint(server) == endpoint


@pytest.mark.parametrize(
    ("code", "details", "message", "leaves_doubt"),
    [
        ("UNAVAILABLE", "etcdserver: request timed out", "etcdserver: request timed out", True),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", "context deadline exceeded", True),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", "etcdserver: too many requests", False),
        ("UNAVAILABLE", "error reading from server: EOF", f"{_UNAVAILABLE} error reading from server: EOF", True),
        ("PERMISSION_DENIED", "no", "rpc error: code = PermissionDenied desc = no", False),
    ],
)
def test_failures_are_told_as_go_does(code, details, message, leaves_doubt):
    failed = CallFailed(code, details)
    assert (failed.message, failed.leaves_doubt) == (message, leaves_doubt)


def test_what_was_never_sent_leaves_no_doubt():
    assert not CallFailed("UNAVAILABLE", "dial tcp 127.0.0.1:1: connect: connection refused", sent=False).leaves_doubt


async def test_a_start_without_etcd_gives_up_and_tells_why(caplog):
    backend = EtcdBackend(Transport(("http://127.0.0.1:1",)), EtcdSettings(dial_seconds=0.2))
    with pytest.raises(Unavailable, match="etcd grpc connection not ready: context deadline exceeded"):
        await backend.open()
    assert not backend.is_open
    [told] = caplog.messages
    assert told.startswith("etcd server http://127.0.0.1:1 cannot be reached: connection error: ")
    assert "connection refused" in told


async def test_files_that_are_not_there_are_named(tmp_path):
    connection = Connection(Transport(("https://127.0.0.1:1",), cafile=str(tmp_path / "none.crt")))
    with pytest.raises(UnusableStore, match=r"open .*none.crt: no such file"):
        await connection.wait_ready(0.1)
    with pytest.raises(UnusableStore):
        Connection(Transport(()))


@pytest.mark.parametrize("server", ["htps://etcd:2379", "ftp://etcd", "http://etcd:port"])
def test_servers_that_cannot_be_meant(server):
    with pytest.raises(UnusableStore, match=server):
        parse_endpoint(server)


@needs_etcd
async def test_who_accepts_and_says_nothing_is_not_taken_for_a_member():
    """The system accepts for a process that was stopped: a write sent there might have been carried out."""
    with EtcdCluster() as cluster, socket.create_server(("127.0.0.1", 0)) as silent:
        backend = EtcdBackend(Transport((f"http://127.0.0.1:{silent.getsockname()[1]}", *cluster.urls)))
        await backend.open()
        try:
            assert backend._connection._preferred == 1
            assert await backend.create("/registry/a", b"b") > 0
        finally:
            await backend.close()


@pytest.mark.parametrize("files", [("", "client.crt", ""), ("", "", "client.key")])
async def test_a_certificate_needs_its_key(files):
    connection = Connection(Transport(("https://127.0.0.1:1",), *files))
    with pytest.raises(UnusableStore, match=r"KeyFile and CertFile must both be present\[key: .*, cert: .*\]"):
        await connection.wait_ready(0.1)


@needs_etcd
async def test_tls_with_a_client_certificate(tmp_path):
    ensure_pki(tmp_path, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
    pki = Pki(tmp_path / "pki")
    flags = (
        f"--cert-file={pki.serving_cert}",
        f"--key-file={pki.serving_key}",
        f"--trusted-ca-file={pki.ca_cert}",
        "--client-cert-auth",
    )
    cluster = EtcdCluster(options=flags)
    try:
        (member,) = cluster.members
        url = f"https://localhost:{member.client_port}"
        member.start()
        files = (str(pki.ca_cert), str(pki.admin_cert), str(pki.admin_key))
        backend = EtcdBackend(Transport((url,), *files))
        await backend.open()
        assert await backend.create("/a", b"x") == 2
        await backend.close()
        stranger = EtcdBackend(Transport((url,), files[0]), EtcdSettings(dial_seconds=0.5))
        with pytest.raises(Unavailable):
            await stranger.open()
    finally:
        cluster.close()


@needs_etcd
async def test_the_next_server_is_asked_when_one_is_away():
    with EtcdCluster() as cluster:
        backend = EtcdBackend(Transport(("http://127.0.0.1:1", *cluster.urls)))
        await backend.open()
        assert await backend.create("/a", b"x") == 2
        backend._connection._preferred = 0
        assert await backend.create("/b", b"x") == 3
        backend._connection._preferred = 0
        reads = await asyncio.gather(*(backend.get("/b") for _ in range(10)))
        assert {item.revision for item in reads} == {3}
        await backend.close()
