"""An etcd with access rules: a server that may see only the keys below its prefix, and others that write their own."""

import asyncio
import itertools
import time
from contextlib import asynccontextmanager

import pytest

from pilothouse.credentials.issuing import issue_client
from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.storage.backends.contract import StorageError, UnusableStore
from pilothouse.storage.backends.etcd import EtcdBackend, EtcdSettings, Transport
from pilothouse.storage.backends.etcd import backend as backend_module
from pilothouse.storage.backends.etcd.compactor import compact
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.messages import put_at_version_request
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd, reports_progress

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")
needs_progress = pytest.mark.skipif(
    not reports_progress(),
    reason="etcd before 3.4.31 and 3.5.13 does not say reliably how far a watch is (name a newer one: ETCD)",
)
PREFIX = "/tenant/"
PATIENCE_SECONDS = 60.0


class Guarded:
    """An etcd that speaks TLS and tells its users by their certificates."""

    def __init__(self, folder, cluster):
        self._folder, self._pki = folder, Pki(folder / "pki")
        (member,) = cluster.members
        self._url = f"https://localhost:{member.client_port}"

    def transport(self, user):
        files = [self._folder / f"{user}.{kind}" for kind in ("crt", "key")]
        for path, data in zip(files, issue_client(self._pki, user, (), 3600, time.time()), strict=True):
            path.write_bytes(data)
        return Transport((self._url,), str(self._pki.ca_cert), *map(str, files))

    @asynccontextmanager
    async def calls(self, user):
        connection = Connection(self.transport(user))
        try:
            await connection.wait_ready(60.0)
            yield connection
        finally:
            await connection.close()

    async def set_rules(self):
        """``tenant`` may read and write below its prefix, ``nobody`` nothing, ``root`` everything."""
        async with self.calls("root") as connection:
            for user in ("root", "tenant", "nobody"):
                await connection.write("Auth/UserAdd", messages.encode({1: user, 3: messages.encode({1: 1})}))
            permission = {1: 2, 2: PREFIX.encode(), 3: PREFIX[:-1].encode() + b"0"}
            for role in ("root", "tenant"):
                await connection.write("Auth/RoleAdd", messages.encode({1: role}))
                await connection.write("Auth/UserGrantRole", messages.encode({1: role, 2: role}))
            granted = messages.encode({1: "tenant", 2: messages.encode(permission)})
            await connection.write("Auth/RoleGrantPermission", granted)
            await connection.write("Auth/AuthEnable", b"")

    async def write_others(self, others):
        """Write what the tenant may not see, without end."""
        for number in itertools.count():
            await others.write("KV/Txn", put_at_version_request(b"/other/key", b"x", number))
            await asyncio.sleep(0.002)


@pytest.fixture
async def guarded(tmp_path):
    ensure_pki(tmp_path, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
    pki = Pki(tmp_path / "pki")
    flags = [f"--cert-file={pki.serving_cert}", f"--key-file={pki.serving_key}", f"--trusted-ca-file={pki.ca_cert}"]
    cluster = EtcdCluster(options=(*flags, "--client-cert-auth"))
    try:
        cluster.members[0].start()
        guarded = Guarded(tmp_path, cluster)
        await guarded.set_rules()
        yield guarded
    finally:
        cluster.close()


@pytest.fixture
async def store(guarded):
    store = EtcdBackend(guarded.transport("tenant"), EtcdSettings(prefix=PREFIX))
    await store.open()
    yield store
    await store.close()


@needs_progress
async def test_a_server_needs_no_more_than_its_prefix(guarded, store):
    async with guarded.calls("root") as others:
        writing = asyncio.get_running_loop().create_task(guarded.write_others(others))
        revisions = [await store.create(f"{PREFIX}{number}", b"x") for number in range(20)]
        assert (await store.list(PREFIX)).revision <= await store.current_revision()
        assert [event.revision for event in (await store.history(PREFIX, 0)).events] == revisions
        writing.cancel()
        await asyncio.wait([writing])
        await compact(others, revisions[9])
    assert store.health.error == ""
    assert await store.compacted_revision() == revisions[9]


@needs_progress
async def test_what_others_write_holds_up_no_reader(guarded, store):
    """A revision of theirs brings no event; etcd is asked whether one of ours is missing."""
    async with guarded.calls("root") as others:
        for number in range(5):
            await others.write("KV/Txn", put_at_version_request(b"/other/key", b"x", number))
            async with asyncio.timeout(PATIENCE_SECONDS):
                revision = await store.current_revision()
            assert store._log.revision >= revision


@pytest.mark.parametrize(("user", "prefix"), [("nobody", PREFIX), ("tenant", "/elsewhere/"), ("tenant", "")])
async def test_a_server_that_may_not_see_its_keys_does_not_start(guarded, user, prefix):
    store = EtcdBackend(guarded.transport(user), EtcdSettings(prefix=prefix))
    with pytest.raises(StorageError, match="permission denied"):
        await store.open()


async def test_an_etcd_that_does_not_tell_how_far_it_is_has_to_show_all(guarded, monkeypatch):
    monkeypatch.setattr(backend_module, "answers_progress_requests", lambda version: False)
    store = EtcdBackend(guarded.transport("tenant"), EtcdSettings(prefix=PREFIX))
    with pytest.raises(UnusableStore, match="has to let the server read all keys"):
        await store.open()
