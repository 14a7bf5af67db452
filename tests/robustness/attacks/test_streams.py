"""What those may do who may exec into a pod, forward its ports or proxy to it, and what comes back from there.

The node is a simulated one, so that both ends of a stream are of the attacked process. The pod behind proxies is a
server of this test, which the attacked one reaches through an egress proxy.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import select
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest
from tests.robustness.attacks.conftest import MEGABYTE, Victim
from tests.robustness.attacks.test_floods import UPGRADE, await_descriptors, connected, descriptors, head

from pilothouse.net.spdy.dictionary import DICTIONARY
from pilothouse.net.spdy.frames import SYN_STREAM, FrameWriter

PODS = "/api/v1/namespaces/default/pods"
EXEC = f"{PODS}/p/exec?command=cat&stdin=1&stdout=1"
FORWARD = f"{PODS}/p/portforward?ports=80"
PROXY = f"{PODS}/web/proxy"
SPDY = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {}\r\nContent-Length: 0\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
CROWD = 30


class Backend:
    """An egress proxy on a Unix socket that is itself all that it leads to. Lives in a thread of its own."""

    def __init__(self, path: str) -> None:
        self.answer = OK
        self._path = path
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self._path, limit=4 * MEGABYTE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError), closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while asked := await reader.readuntil(b"\r\n\r\n"):
                if b"\r\nTransfer-Encoding: chunked\r\n" in asked:
                    await reader.readuntil(b"0\r\n")
                    while await reader.readuntil(b"\r\n") != b"\r\n":
                        pass
                writer.write(self.answer)
                await writer.drain()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with closing(Backend(str(tmp_path_factory.mktemp("egress") / "socket"))) as made:
        yield made


@pytest.fixture(scope="module")
def streaming(
    backend: Backend, launch_victim: Callable[..., Victim], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    """A server with a pod on a simulated node; whatever is done to it leaves no traceback."""
    proxy = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": backend._path}}}
    selection = {"egressSelections": [{"name": "cluster", "connection": proxy}]}
    kind = {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration"}
    file = tmp_path_factory.mktemp("egress") / "egress.json"
    file.write_text(json.dumps(kind | selection))
    flags = ("--disable-admission-plugins=ServiceAccount", "--simulate-nodes=1")
    victim = launch_victim(*flags, f"--egress-selector-config-file={file}")
    while not (nodes := victim.call("GET", "/api/v1/nodes").json["items"]):
        assert victim.server.process.poll() is None
    make_pod(victim, "p", nodeName=nodes[0]["metadata"]["name"])
    while victim.call("GET", f"{PODS}/p").json["status"].get("phase") != "Running":
        assert victim.server.process.poll() is None
    make_pod(victim, "web")
    status = {"status": {"podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}]}}
    assert victim.call("PATCH", f"{PODS}/web/status", status, "application/merge-patch+json").status == 200
    for path, protocol in ((EXEC, "v5.channel.k8s.io"), (FORWARD, "portforward.k8s.io")):
        inside = protocol if path is EXEC else f"SPDY/3.1+{protocol}"
        with spdy(victim, path, protocol), websocket(victim, path, inside):
            pass
    assert victim.call("GET", f"{PROXY}/x").body == b"ok"
    yield victim
    assert "Traceback" not in victim.server.log.read_text(errors="replace")


def make_pod(victim: Victim, name: str, **spec: Any) -> None:
    spec["containers"] = [{"name": "c", "image": "i"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    assert victim.call("POST", PODS, pod).status == 201


@contextmanager
def upgraded(victim: Victim, said: bytes) -> Iterator[ssl.SSLSocket]:
    with connected(victim) as each:
        each.sendall(said)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += each.recv(1)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        yield each


def spdy(victim: Victim, path: str, protocol: str = "portforward.k8s.io") -> Any:
    return upgraded(victim, head(path, SPDY.format(protocol), "POST"))


def websocket(victim: Victim, path: str, protocol: str) -> Any:
    return upgraded(victim, head(path, f"{UPGRADE}Sec-WebSocket-Protocol: {protocol}\r\n"))


def push(each: ssl.SSLSocket, data: bytes) -> None:
    """Send what the server takes, until it takes no more for a second or hangs up. Nothing is read."""
    each.setblocking(False)
    left = memoryview(data)
    while left:
        try:
            left = left[each.send(left[:16384]) :]
        except ssl.SSLWantWriteError:
            if not select.select([], [each], [], 1.0)[1]:
                return
        except OSError:
            return


def opening(deflate: Any, number: int, headers: bytes) -> bytes:
    """A SYN_STREAM with headers as they are before they are compressed."""
    block = deflate.compress(headers) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return struct.pack(">HHIIxxxxxx", 0x8003, SYN_STREAM, 10 + len(block), number) + block


def of_length(size: int, letter: bytes) -> bytes:
    return (1).to_bytes(4, "big") * 2 + b"a" + size.to_bytes(4, "big") + letter * size


@pytest.mark.parametrize("letter", [b"\0", b"a"], ids=["values", "letters"])
def test_headers_that_inflate(streaming: Victim, letter: bytes) -> None:
    """A kilobyte each, and a megabyte (or a list of as many values) for as long as the stream is open."""
    deflate = zlib.compressobj(9, zdict=DICTIONARY)
    bombs = b"".join(opening(deflate, number, of_length(MEGABYTE - 100, letter)) for number in range(1, 60, 2))
    with streaming.attacked("SPDY headers that inflate", allowance=16 * MEGABYTE), spdy(streaming, FORWARD) as each:
        push(each, bombs)
        assert streaming.call("GET", f"{PODS}/p").status == 200


def test_streams_that_are_reset(streaming: Victim) -> None:
    writer, name = FrameWriter(), "x" * 8000
    pairs = (
        writer.syn_stream(number, {"requestid": [f"{number}{name}"], "streamtype": ["data"]})
        + writer.rst_stream(number, 5)
        for number in range(1, 10_000, 2)
    )
    wire = b"".join(pairs)
    with streaming.attacked("SPDY streams opened and reset", allowance=16 * MEGABYTE), spdy(streaming, FORWARD) as each:
        push(each, wire)


def test_data_that_nobody_reads(streaming: Victim) -> None:
    """Half of a pair each, which nobody connects anything to."""
    writer, numbers = FrameWriter(), range(1, 400, 2)
    opened = b"".join(writer.syn_stream(n, {"requestid": [str(n)], "streamtype": ["data"]}) for n in numbers)
    data = b"".join(FrameWriter.data(number, b"x" * 32_000) * 6 for number in numbers)
    with streaming.attacked("SPDY data unread", allowance=16 * MEGABYTE), spdy(streaming, FORWARD) as each:
        push(each, opened + data)


@pytest.mark.parametrize(
    "frame",
    [FrameWriter.ping(1), FrameWriter.data(7, b"x"), b"\x80\x03\0\x04\0\0\0\x04\0\0\0\0"],
    ids=["pings", "data of nobody", "settings"],
)
def test_short_frames(streaming: Victim, frame: bytes) -> None:
    with streaming.attacked("SPDY frames that are short"), spdy(streaming, FORWARD) as each:
        push(each, frame * 150_000)


@pytest.mark.parametrize(
    ("path", "protocol", "frame"),
    [
        (EXEC, "v5.channel.k8s.io", b"\x81\x82\0\0\0\0\0x"),
        (EXEC, "v4.channel.k8s.io", b"\x82\x82\0\0\0\0\0x"),
        (EXEC, "v5.channel.k8s.io", b"\x82\x83\0\0\0\0\4{}"),
        (FORWARD, "SPDY/3.1+portforward.k8s.io", b"\x82\x80\0\0\0\0"),
    ],
    ids=["translated", "passed on", "sizes", "tunnelled"],
)
def test_a_crowd_of_websockets(streaming: Victim, path: str, protocol: str, frame: bytes) -> None:
    """Messages of a byte, by many: each has its turn, and all of them no more than one would."""
    with websocket(streaming, path, protocol):
        pass  # what a stream is the first to need is imported then
    before, wire = descriptors(streaming), frame * 4_000
    with streaming.attacked(f"websockets of short messages, {protocol}"), ExitStack() as stack:
        crowd = [stack.enter_context(websocket(streaming, path, protocol)) for _ in range(CROWD)]
        for each in crowd:
            push_some(each, wire)
    await_descriptors(streaming, before + 20)


def push_some(each: ssl.SSLSocket, data: bytes) -> None:
    """Send what the socket has room for."""
    each.setblocking(False)
    with suppress(OSError):
        while data:
            data = data[each.send(data[:16384]) :]


def ask(victim: Victim, said: bytes) -> int:
    with connected(victim) as each:
        each.sendall(said)
        answer = b""
        while len(answer) < 12:
            answer += each.recv(12 - len(answer))
    return int(answer[9:12])


@pytest.mark.parametrize(
    "said",
    [
        head(PROXY + "/a" * 450_000),
        head(PROXY.replace("pods/web", "pods%2Fweb") + "/%ff" * 150_000),
        head(f"{PROXY}/x", f"Connection: {'a,' * 450_000}\r\n"),
        head(f"{PROXY}/x", f"Transfer-Encoding: chunked\r\nTrailer: {'a,' * 400_000}b\r\n", "POST")
        + b"1\r\na\r\n0\r\n"
        + b"".join(b"a%d: b\r\n" % number for number in range(400))
        + b"\r\n",
    ],
    ids=["segments", "hidden segments", "connection", "trailers"],
)
def test_long_ways(streaming: Victim, said: bytes) -> None:
    with streaming.attacked("proxied requests of 900 KB"):
        for _ in range(3):
            assert ask(streaming, said) == 200


def test_long_names_of_headers(streaming: Victim) -> None:
    with streaming.attacked("names of headers of 900 KB", allowance=24 * MEGABYTE):
        for number in range(60):
            assert ask(streaming, head(f"{PROXY}/x", f"a{number}{'b' * 900_000}: c\r\n")) == 200


@pytest.mark.parametrize("port", ["%C2%B2", "9" * 5000, "99999999", "-1", "%D9%A3"])
def test_ports_that_are_none(streaming: Victim, port: str) -> None:
    assert ask(streaming, head(f"{PODS}/web:{port}/proxy/x")) == 503
    assert ask(streaming, head(f"/api/v1/namespaces/default/services/kubernetes:{port}/proxy/x")) == 503


@pytest.mark.parametrize("page", [b"<a " + b"b " * 1_500_000 + b">", b"<a>" * 600_000], ids=["attributes", "tags"])
def test_pages_that_unfold(streaming: Victim, backend: Backend, page: bytes) -> None:
    body = gzip.compress(page)
    lines = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    backend.answer = lines % len(body) + body
    with streaming.attacked("pages of some KB that unfold to 3 MB", allowance=48 * MEGABYTE):
        assert streaming.call("GET", f"{PROXY}/x").status == 200
    backend.answer = OK


@pytest.mark.parametrize(
    "line",
    [b"HTTP/1.1 200 %b\r\n", b"HTTP/1.1 302 Found\r\nLocation: /%b\r\n"],
    ids=["reasons", "locations"],
)
def test_long_answers(streaming: Victim, backend: Backend, line: bytes) -> None:
    with streaming.attacked("heads of answers of 900 KB", allowance=24 * MEGABYTE):
        for number in range(40):
            backend.answer = line % (b"%d" % number + b"a" * 900_000) + b"Content-Length: 0\r\n\r\n"
            assert ask(streaming, head(f"{PROXY}/x")) in (200, 302)
    backend.answer = OK
