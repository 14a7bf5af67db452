"""The client against grpcio's server: another implementation of the same protocol."""

import asyncio
import contextlib

import grpc  # type: ignore[import-untyped]
import pytest

from pilothouse.net.busy_polling import BusyPolling
from pilothouse.net.dialing import Target
from pilothouse.net.grpc import Channel, RpcError
from pilothouse.net.grpc.calls import UnaryCall
from pilothouse.net.grpc.connection import GrpcConnection
from pilothouse.net.http2 import frames

ECHO, STREAM = "/test/Echo", "/test/Stream"


class Handlers(grpc.GenericRpcHandler):
    """Echoes; messages that begin with ``fail`` or ``wait`` do that."""

    def __init__(self):
        self.started, self.cancelled = asyncio.Event(), asyncio.Event()
        self.metadata = []

    def service(self, details):
        if details.method == ECHO:
            return grpc.unary_unary_rpc_method_handler(self.echo)
        return grpc.stream_stream_rpc_method_handler(self.stream) if details.method == STREAM else None

    async def echo(self, message, context):
        if message.startswith(b"fail"):
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "äh, 100% no")
        if message.startswith(b"wait"):
            self.started.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.cancelled.set()
        return message

    async def stream(self, messages, context):
        self.metadata = [tuple(pair) for pair in context.invocation_metadata()]
        async for message in messages:
            if message == b"end":
                return
            if message.startswith(b"many"):
                for _ in range(int(message[4:])):
                    yield b"x" * 100_000
            yield message


@contextlib.asynccontextmanager
async def serving():
    server, handlers = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)]), Handlers()
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = Channel(Target("127.0.0.1", port))
    try:
        yield channel, handlers, server
    finally:
        await channel.close()
        await server.stop(None)


async def test_answers_of_any_size_many_at_once():
    async with serving() as (channel, _, _):
        sizes = [0, 1, 127, 16_379, 16_380, 70_000, 3_000_000, *range(100)]
        messages = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
        assert await asyncio.gather(*(channel.unary(ECHO, each, 30) for each in messages)) == messages


async def test_answers_are_expected_at_once(monkeypatch):
    told = []
    monkeypatch.setattr(BusyPolling, "expect", lambda polling: told.append((id(polling), "expect")))
    monkeypatch.setattr(BusyPolling, "came", lambda polling: told.append((id(polling), "came")))
    async with serving() as (channel, _, _):
        for _ in range(2):
            await channel.unary(ECHO, b"x", 30)
        with pytest.raises(RpcError):
            await channel.unary("/test/Nothing", b"", 30)
    (first, other) = dict.fromkeys(which for which, _ in told)
    assert told == [(first, "expect"), (first, "came")] * 2 + [(other, "expect")]


async def test_failures_have_their_code_and_text():
    async with serving() as (channel, _, _):
        with pytest.raises(RpcError) as failed:
            await channel.unary(ECHO, b"fail", 30)
        assert (failed.value.code, failed.value.details) == ("FAILED_PRECONDITION", "äh, 100% no")
        with pytest.raises(RpcError) as failed:
            await channel.unary("/test/Nothing", b"", 30)
        assert failed.value.code == "UNIMPLEMENTED"
        assert await channel.unary(ECHO, b"again", 30) == b"again"


async def test_a_call_has_its_time_and_the_server_learns_of_its_end():
    async with serving() as (channel, handlers, _):
        with pytest.raises(RpcError) as failed:
            await channel.unary(ECHO, b"wait", 0.05)
        assert failed.value.code == "DEADLINE_EXCEEDED"
        handlers.started.clear()
        waiting = asyncio.ensure_future(channel.unary(ECHO, b"wait", 60))
        assert await channel.unary(ECHO, b"beside", 30) == b"beside"
        await asyncio.wait_for(handlers.started.wait(), 120)
        handlers.cancelled.clear()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(handlers.cancelled.wait(), 120)


async def test_each_call_has_a_time_of_its_own():
    async with serving() as (channel, _, _):
        long = asyncio.ensure_future(channel.unary(ECHO, b"wait", 60))
        await asyncio.sleep(0)
        for _ in range(2):
            late = await asyncio.gather(
                *(channel.unary(ECHO, b"wait", seconds) for seconds in (0.06, 0.02)), return_exceptions=True
            )
            assert [error.code for error in late] == ["DEADLINE_EXCEEDED"] * 2
        assert not long.done()
        long.cancel()


class Written:
    """A transport that keeps what is written."""

    def __init__(self):
        self.data, self.changed = [], asyncio.Event()

    def write(self, data):
        self.data.append(data)
        self.changed.set()

    def abort(self):
        pass

    close = abort


async def test_a_sign_of_life_is_kept_back_and_then_goes_out_alone():
    transport, connection, call = Written(), GrpcConnection(), UnaryCall(asyncio.get_running_loop(), 60)
    connection.connection_made(transport)
    transport.data.clear()
    connection.data_received(frames.header(8, frames.PING, 0, 0) + b"pingping")
    assert transport.data == []
    connection.begin(call, b"\x83", b"data")
    assert len(transport.data) == 1
    assert frames.ping_ack(b"pingping") not in transport.data[0]
    transport.changed.clear()
    await transport.changed.wait()
    assert transport.data[1:] == [frames.ping_ack(b"pingping")]
    connection.connection_lost(None)
    with pytest.raises(RpcError, match="reading from server"):
        await call.answer


async def test_calls_of_one_turn_are_one_write_but_for_the_first():
    transport, connection = Written(), GrpcConnection()
    calls = [UnaryCall(asyncio.get_running_loop(), 60) for _ in range(4)]
    connection.connection_made(transport)
    transport.data.clear()
    for number, call in enumerate(calls):
        connection.begin(call, b"\x83", b"data%d" % number)
    connection.cancel(calls[2], RpcError("CANCELLED", "enough"))
    assert len(transport.data) == 1
    await asyncio.sleep(0)
    first, rest = transport.data
    assert first.endswith(b"data0")
    assert rest.index(b"data1") < rest.index(b"data2") < rest.index(b"data3")
    assert rest.endswith(frames.rst_stream(calls[2].number, frames.CANCEL))
    connection.connection_lost(None)
    for call in calls:
        assert call.answer.exception()


async def test_much_is_not_gathered():
    transport, connection = Written(), GrpcConnection()
    calls = [UnaryCall(asyncio.get_running_loop(), 60) for _ in range(7)]
    connection.connection_made(transport)
    connection.data_received(frames.window_update(0, 1 << 20))
    transport.data.clear()
    for call in calls:
        connection.begin(call, b"\x83", b"x" * 15_000)
    assert len(transport.data) == 2
    await asyncio.sleep(0)
    assert sum(map(len, transport.data)) > 7 * 15_000
    connection.connection_lost(None)
    for call in calls:
        assert call.answer.exception()


@pytest.mark.parametrize(("seconds", "code"), [(0.0, "DEADLINE_EXCEEDED"), (60.0, "CANCELLED")])
async def test_a_server_that_cancels_what_is_late_says_only_that(seconds, code):
    """It has the same clock: its word may be read before we look at ours."""
    transport, connection = Written(), GrpcConnection()
    call = UnaryCall(asyncio.get_running_loop(), seconds)
    connection.connection_made(transport)
    connection.begin(call, b"\x83", b"data")
    connection.data_received(frames.rst_stream(call.number, frames.CANCEL))
    with pytest.raises(RpcError) as failed:
        await call.answer
    assert failed.value.code == code
    connection.connection_lost(None)


async def test_streams_go_both_ways_at_the_readers_pace():
    async with serving() as (channel, handlers, _):
        stream = await channel.stream(STREAM, b"first", ((b"hasleader", b"true"),))
        assert await stream.read() == b"first"
        assert ("hasleader", "true") in handlers.metadata
        stream.write(b"many60")
        for _ in range(60):
            assert len(await stream.read()) == 100_000
        assert await stream.read() == b"many60"
        stream.write(b"end")
        with pytest.raises(RpcError) as ended:
            await stream.read()
        assert ended.value.code == "OUT_OF_RANGE"


async def test_a_stream_given_up_fails_whoever_reads():
    async with serving() as (channel, _, _):
        stream = await channel.stream(STREAM, b"first")
        assert await stream.read() == b"first"
        reading = asyncio.ensure_future(stream.read())
        await asyncio.sleep(0)
        stream.cancel("UNAVAILABLE", "enough")
        with pytest.raises(RpcError, match="enough"):
            await reading
        with pytest.raises(RpcError, match="enough"):
            stream.write(b"more")


async def test_a_server_that_is_not_there_was_not_asked():
    channel = Channel(Target("127.0.0.1", 1))
    for _ in range(2):
        with pytest.raises(RpcError, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused") as failed:
            await channel.unary(ECHO, b"", 30)
        assert (failed.value.code, failed.value.sent) == ("UNAVAILABLE", False)
    await channel.close()


async def test_a_server_that_leaves_before_its_settings_was_not_asked():
    async def leave(reader, writer):
        writer.close()

    server = await asyncio.start_server(leave, "127.0.0.1", 0)
    channel = Channel(Target("127.0.0.1", server.sockets[0].getsockname()[1]))
    with pytest.raises(RpcError, match="error reading server preface: ") as failed:
        await channel.unary(ECHO, b"", 5)
    assert (failed.value.code, failed.value.sent) == ("UNAVAILABLE", False)
    await channel.close()
    server.close()
    await server.wait_closed()


async def test_a_server_that_goes_away_fails_its_calls():
    async with serving() as (channel, _, server):
        stream = await channel.stream(STREAM, b"first")
        assert await stream.read() == b"first"
        await server.stop(None)
        with pytest.raises(RpcError) as failed:
            await stream.read()
        assert failed.value.code in ("UNAVAILABLE", "CANCELLED")
        with pytest.raises(RpcError) as failed:
            while True:
                await channel.unary(ECHO, b"x", 30)
        assert failed.value.code == "UNAVAILABLE"


async def test_nonsense_from_a_server_ends_the_connection():
    async def speak(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    channel = Channel(Target("127.0.0.1", server.sockets[0].getsockname()[1]))
    with pytest.raises(RpcError) as failed:
        await channel.unary(ECHO, b"", 30)
    assert failed.value.code == "UNAVAILABLE"
    await channel.close()
    server.close()
