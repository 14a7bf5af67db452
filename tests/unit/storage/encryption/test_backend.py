"""The encrypting backend behaves like any backend, and what it keeps below is not readable."""

import asyncio

import pytest

from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.encryption.aes import AESGCM
from pilothouse.storage.encryption.backend import EncryptedBackend
from pilothouse.storage.encryption.configuration import Key, Provider, Rule
from pilothouse.storage.encryption.transformers import Transformers
from pilothouse.storage.encryption.transforming import KeyMissing, TransformFailed
from pilothouse.testing.storage_conformance import BackendConformance


class Everything:
    """Transforms every key."""

    def __init__(self, transformer):
        self.transformer = transformer
        self.envelopes = []

    def find(self, key):
        return self.transformer


class Harness:
    def __init__(self, path):
        self.path = path
        self.time = 1_700_000_000.0
        self.handles = []

    async def open(self):
        inner = SQLiteBackend(self.path, clock=lambda: self.time, upkeep_seconds=0, poll_seconds=0.005)
        backend = EncryptedBackend(inner, Everything(AESGCM(bytes(32))))
        await backend.open()
        self.handles.append((inner, backend))
        return backend

    async def pass_time(self, seconds):
        self.time += seconds
        for inner, _ in self.handles:
            if inner.is_open:
                await inner.maintain()

    async def close(self):
        for _, backend in self.handles:
            await backend.close()


@pytest.fixture
async def harness(tmp_path):
    harness = Harness(str(tmp_path / "store.db"))
    yield harness
    await harness.close()


class TestEncrypted(BackendConformance):
    """All that is asked of a backend."""


def key_rule(name, *providers):
    return Rule((name,), tuple(providers))


def aesgcm(*names):
    return Provider("aesgcm", tuple(Key(name, name.encode() * 32) for name in names))


@pytest.fixture
async def inner(tmp_path):
    backend = SQLiteBackend(str(tmp_path / "store.db"), upkeep_seconds=0)
    await backend.open()
    yield backend
    await backend.close()


def transformers(*rules):
    return Transformers(rules, "/registry", lambda settings: None)


async def test_only_what_is_asked_for_is_encrypted(inner):
    backend = EncryptedBackend(inner, transformers(key_rule(("", "secrets"), aesgcm("a"))))
    for key in ("/registry/secrets/n/s", "/registry/configmaps/n/m"):
        await backend.create(key, b"value")
    assert (await inner.get("/registry/secrets/n/s")).value.startswith(b"k8s:enc:aesgcm:v1:a:")
    assert (await inner.get("/registry/configmaps/n/m")).value == b"value"
    assert (await backend.get("/registry/secrets/n/s")).value == b"value"


@pytest.mark.parametrize(
    ("rule", "key", "found"),
    [
        (("", "secrets"), "/registry/secrets/a/b", True),
        (("", "services"), "/registry/services/specs/a/b", True),
        (("", "services"), "/registry/services/endpoints/a/b", False),
        (("", "nodes"), "/registry/minions/a", True),
        (("apps", "*"), "/registry/deployments/a/b", True),
        (("apps", "*"), "/registry/jobs/a/b", False),
        (("", "*"), "/registry/configmaps/a/b", True),
        (("", "events"), "/registry/events/a/b", True),
        (("example.com", "pandas"), "/registry/example.com/pandas/a/b", True),
        (("example.com", "*"), "/registry/example.com/bears/a", True),
        (("*", "*"), "/registry/example.com/bears/a", True),
        (("*", "*"), "/registry/apiregistration.k8s.io/apiservices/a", True),
        (("*", "*"), "/registry/masterleases/a", False),
        (("*", "*"), "/registry/ranges/serviceips", False),
    ],
)
def test_which_keys_belong_to_a_rule(rule, key, found):
    made = transformers(key_rule(rule, aesgcm("a")))
    assert (made.find(key) is not None) is found
    assert (made.find(key) is not None) is found


async def test_old_keys_are_read_and_stale(inner):
    key = "/registry/secrets/n/s"
    backend = EncryptedBackend(inner, transformers(key_rule(("", "secrets"), aesgcm("a"))))
    revision = await backend.create(key, b"value")
    assert await backend.is_stale(key) is False
    backend.transformers = transformers(key_rule(("", "secrets"), aesgcm("b", "a")))
    assert (await backend.get(key)).value == b"value"
    assert await backend.is_stale(key) is True
    await backend.update(key, b"value", revision)
    assert await backend.is_stale(key) is False
    assert await backend.is_stale("/registry/secrets/n/none") is False
    assert await backend.is_stale("/registry/pods/n/p") is False


async def test_without_the_key_a_read_says_which_object(inner):
    key = "/registry/secrets/n/s"
    backend = EncryptedBackend(inner, transformers(key_rule(("", "secrets"), aesgcm("a"))))
    await backend.create(key, b"value")
    backend.transformers = transformers(key_rule(("", "secrets"), aesgcm("b")))
    for read in (backend.get(key), backend.list("/registry/secrets/"), backend.is_stale(key)):
        with pytest.raises(StorageError, match='unable to transform key "/registry/secrets/n/s"'):
            await read


class Remote:
    """Needs its key fetched before anything can be read."""

    def __init__(self):
        self.fetched = 0
        self.error = ""

    def to_storage(self, data, context):
        return b"remote:" + data

    def from_storage(self, data, context):
        if not self.fetched:
            raise KeyMissing(self.fetch)
        return data.removeprefix(b"remote:"), False

    async def fetch(self):
        if self.error:
            raise TransformFailed(self.error)
        self.fetched += 1


class Followed:
    def __init__(self):
        self.seen = []

    def receive(self, events, revision):
        self.seen += [(event.key, event.value) for event in events]

    def fail(self, error):
        self.seen.append(error)


async def test_the_feed_keeps_its_order_while_a_key_is_fetched(inner):
    remote = Remote()
    backend = EncryptedBackend(inner, Everything(remote))
    followed = Followed()
    feed = backend.follow(followed)
    for name in "abc":
        await backend.create(name, name.encode())
    await backend.current_revision()
    assert followed.seen == [("a", b"a"), ("b", b"b"), ("c", b"c")]
    assert remote.fetched == 1
    feed.close()


class Foreseeing(SQLiteBackend):
    """Asked ahead, like a store that others write to."""

    def foresee(self):
        return asyncio.ensure_future(self.current_revision())


async def test_what_is_asked_ahead_waits_for_the_feed_too(tmp_path):
    inner = Foreseeing(str(tmp_path / "store.db"))
    backend = EncryptedBackend(inner, Everything(Remote()))
    await backend.open()
    followed = Followed()
    feed = backend.follow(followed)
    await backend.create("a", b"a")
    assert await backend.foresee() == 2
    assert followed.seen == [("a", b"a")]
    feed.close()
    await backend.close()


async def test_a_key_that_cannot_be_fetched_fails_the_read_and_not_the_feed(inner, caplog):
    remote = Remote()
    remote.error = "the service is down"
    backend = EncryptedBackend(inner, Everything(remote))
    followed = Followed()
    feed = backend.follow(followed)
    await backend.create("a", b"a")
    await backend.current_revision()
    assert followed.seen == [("a", b"remote:a")]
    assert "the service is down" in caplog.text
    with pytest.raises(StorageError, match="the service is down"):
        await backend.get("a")
    feed.close()
