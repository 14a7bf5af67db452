"""Envelope encryption, with a service in memory and with a real one over gRPC."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.storage.encryption.kms import WRITE_SECONDS, Encrypted, Envelope, Status
from pilothouse.storage.encryption.kms_client import KMSClient
from pilothouse.storage.encryption.transforming import KeyMissing, TransformFailed


class Service:
    """Encrypts by turning bytes around."""

    def __init__(self):
        self.key_id = "first"
        self.health = "ok"
        self.version = "v2"
        self.decrypted = 0

    async def status(self):
        return Status(self.version, self.health, self.key_id)

    async def encrypt(self, uid, plaintext):
        return Encrypted(plaintext[::-1], self.key_id, {"example.com": b"note"})

    async def decrypt(self, uid, encrypted):
        self.decrypted += 1
        assert encrypted.annotations == {"example.com": b"note"}
        return encrypted.ciphertext[::-1]

    async def close(self):
        pass


async def read(envelope, data):
    while True:
        try:
            return envelope.from_storage(data, b"key")
        except KeyMissing as missing:
            await missing.fetch()


async def test_one_seed_serves_until_the_key_changes():
    service = Service()
    envelope = Envelope("kms", service)
    await envelope.refresh()
    first = envelope.to_storage(b"value", b"key")
    await envelope.refresh()
    assert await read(envelope, first) == (b"value", False)
    service.key_id = "second"
    await envelope.refresh()
    assert await read(envelope, first) == (b"value", True)
    assert await read(envelope, envelope.to_storage(b"new", b"key")) == (b"new", False)
    assert service.decrypted == 0


async def test_another_server_asks_for_the_seed_once():
    service = Service()
    writer, reader = Envelope("kms", service), Envelope("kms", service)
    await writer.refresh()
    await reader.refresh()
    values = [writer.to_storage(b"%d" % number, b"key") for number in range(5)]
    assert [await read(reader, value) for value in values] == [(b"%d" % number, False) for number in range(5)]
    assert service.decrypted == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"health": "sick"}, "got unexpected healthz status: sick"),
        ({"version": "v3"}, "expected KMSv2 API version v2, got v3"),
        ({"key_id": ""}, "keyID is empty"),
        ({"key_id": "x" * 2000}, "which exceeds the max size of 1024"),
    ],
)
async def test_an_unhealthy_service(change, error):
    service = Service()
    envelope = Envelope("kms", service)
    vars(service).update(change)
    await envelope.refresh()
    assert error in envelope.error
    with pytest.raises(TransformFailed):
        envelope.to_storage(b"value", b"key")


async def test_writes_are_refused_when_the_service_has_been_away_for_long():
    now = [0.0]
    service = Service()
    envelope = Envelope("kms", service, lambda: now[0])
    await envelope.refresh()
    stored = envelope.to_storage(b"value", b"key")
    now[0] = WRITE_SECONDS + 1
    with pytest.raises(TransformFailed, match="expired"):
        envelope.to_storage(b"value", b"key")
    assert await read(envelope, stored) == (b"value", False)
    await envelope.refresh()
    assert envelope.to_storage(b"value", b"key")


@given(st.binary(max_size=60))
def test_nonsense_is_refused(data):
    with pytest.raises(TransformFailed):
        Envelope("kms", Service()).from_storage(data, b"key")


@given(
    st.dictionaries(
        st.integers(1, 20),
        st.one_of(
            st.binary(min_size=1),
            st.text(min_size=1),
            st.integers(1, 2**63),
            st.dictionaries(st.text(), st.binary(), min_size=1),
        ),
    )
)
def test_messages(fields):
    found = messages.decode(messages.encode(fields))
    assert set(found) == set(fields)
    for number, value in fields.items():
        if isinstance(value, dict):
            assert messages.map_of(found, number) == value
        elif isinstance(value, int):
            assert messages.number_of(found, number) == value
        elif isinstance(value, str):
            assert messages.text_of(found, number) == value
        else:
            assert messages.data_of(found, number) == value


@given(st.binary(max_size=40))
def test_messages_are_read_or_refused(data):
    with contextlib.suppress(messages.MalformedMessage):
        messages.decode(data)


@pytest.fixture
async def serve(tmp_path):
    """Starts key management services over gRPC on a Unix socket, which answer as they are told."""
    grpc = pytest.importorskip("grpc")
    path, started = tmp_path / "kms.sock", []

    async def start(**methods):
        server = grpc.aio.server()
        handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v2.KeyManagementService", handlers)])
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        started.append(server)
        return f"unix://{path}"

    yield start
    for server in started:
        await server.stop(None)


@pytest.fixture
async def endpoint(serve):
    """One that does its work."""
    service = Service()

    async def status(request, context):
        return messages.encode({1: "v2", 2: "ok", 3: service.key_id})

    async def encrypt(request, context):
        made = await service.encrypt("", messages.data_of(messages.decode(request), 1))
        return messages.encode({1: made.ciphertext, 2: made.key_id, 3: made.annotations})

    async def decrypt(request, context):
        asked = messages.decode(request)
        encrypted = Encrypted(messages.data_of(asked, 1), messages.text_of(asked, 3), messages.map_of(asked, 4))
        return messages.encode({1: await service.decrypt("", encrypted)})

    return await serve(Status=status, Encrypt=encrypt, Decrypt=decrypt)


@pytest.mark.parametrize(
    ("state", "made", "error"),
    [
        (b"\xff\xff", b"", "unexpected EOF"),
        (None, messages.encode({1: b"x", 2: "first", 3: b"\xff"}), "unexpected EOF"),
        (None, messages.encode({1: b"x", 2: "\udcff".encode("utf-8", "surrogateescape")}), "another key"),
        (messages.encode({1: "v2", 2: "x" * 100_000}), b"", "code = ResourceExhausted"),
    ],
)
async def test_a_service_that_answers_nonsense(serve, state, made, error):
    async def status(request, context):
        return messages.encode({1: "v2", 2: "ok", 3: "first"}) if state is None else state

    async def encrypt(request, context):
        return made

    envelope = Envelope("kms", KMSClient(await serve(Status=status, Encrypt=encrypt), 5.0))
    await envelope.refresh()
    assert error in envelope.error
    await envelope.close()


async def test_over_grpc(endpoint):
    writer, reader = (Envelope("kms", KMSClient(endpoint, 5.0)) for _ in range(2))
    await writer.refresh()
    await reader.refresh()
    assert (writer.error, reader.error) == ("", "")
    assert await read(reader, writer.to_storage(b"value", b"key")) == (b"value", False)
    await writer.close()
    await reader.close()


async def test_nobody_listens(tmp_path):
    pytest.importorskip("grpc")
    envelope = Envelope("kms", KMSClient(f"unix://{tmp_path}/none.sock", 1.0))
    await envelope.refresh()
    assert "rpc error: code = " in envelope.error
    await envelope.close()
