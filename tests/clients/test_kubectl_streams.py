"""kubectl logs, exec, attach, cp, debug, port-forward and proxy against a kubelet that speaks the real protocols.

Each three times: over SPDY, over WebSockets that the server translates, and over WebSockets that the kubelet speaks.
SPDY is spoken by kubectl 1.20 where there is one (``OLD_KUBECTL``, or ``.tools/kubectl-1.20``), and else by today's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import termios
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import orjson
import pytest
from tests.conftest import ROOT, find_client, go_environment

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.kubelet import Process, StandInKubelet, run_locally

PODS = "/api/v1/namespaces/default/pods"
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


def find_old_client() -> str:
    """kubectl 1.20 if there is one, else today's."""
    named = os.environ.get("OLD_KUBECTL") or str(ROOT / ".tools" / "kubectl-1.20")
    return named if Path(named).exists() else find_client("kubectl", "KUBECTL")


class Kubectl:
    """kubectl, as a child of the test's own loop."""

    def __init__(self, server: InProcessServer, *, spdy: bool) -> None:
        path = find_old_client() if spdy else find_client("kubectl", "KUBECTL")
        self.command = [path, f"--kubeconfig={server.kubeconfig}"]
        self._environment = {**os.environ, **go_environment(), **(SPDY if spdy else {})}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._environment, limit=1 << 28
        )

    async def __call__(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        running = await self.start(*arguments)
        try:
            async with asyncio.timeout(60):
                out, err = await running.communicate(given)
        finally:
            with suppress(ProcessLookupError):
                running.kill()
        assert running.returncode is not None
        return running.returncode, out, err


@pytest.fixture(params=["spdy", "translated", "native"])
async def kubelet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StandInKubelet]:
    folder = tmp_path / "container"
    folder.mkdir()
    async with StandInKubelet(folder=str(folder), native_websockets=request.param == "native") as made:
        yield made


@pytest.fixture(scope="module")
def api() -> Iterator[InProcessServer]:
    """A server for all tests; each has the node and the pod for itself."""
    with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        yield server


@pytest.fixture
async def kubectl(
    api: InProcessServer, kubelet: StandInKubelet, request: pytest.FixtureRequest
) -> AsyncIterator[Kubectl]:
    way = request.node.callspec.params.get("kubelet")
    assert (await api.request("POST", "/api/v1/nodes", kubelet.node("node-1"))).status == 201
    pod = {
        "metadata": {"name": "web"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]},
    }
    assert (await api.request("POST", PODS, pod)).status == 201
    running = {"status": {"phase": "Running"}}
    headers = {"Content-Type": "application/merge-patch+json"}
    assert (await api.request("PATCH", f"{PODS}/web/status", running, headers)).status == 200
    yield Kubectl(api, spdy=way == "spdy")
    assert (await api.request("DELETE", f"{PODS}/web?gracePeriodSeconds=0")).status == 200
    assert (await api.request("DELETE", "/api/v1/nodes/node-1")).status == 200


async def test_logs(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    log = kubelet.log("default", "web")
    log.write(b"one\ntwo\nthree\n")
    assert await kubectl("logs", "web", "--tail=2") == (0, b"two\nthree\n", b"")
    following = await kubectl.start("logs", "-f", "web")
    assert following.stdout is not None
    assert await following.stdout.readline() == b"one\n"
    log.write(b"four\n")
    assert [await following.stdout.readline() for _ in range(3)] == [b"two\n", b"three\n", b"four\n"]
    log.end()
    assert await following.wait() == 0


async def test_exec(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    protocol = b"websocket" if kubelet.native_websockets else b"SPDY/3.1"
    assert await kubectl("exec", "web", "--", "echo", "hello  there") == (0, b"hello  there\n", b"")
    code, out, err = await kubectl("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (code, out) == (7, b"out\n")
    assert err == b"err\ncommand terminated with exit code 7\n"
    assert await kubectl("exec", "-i", "web", "--", "tr", "a-z", "A-Z", given=b"abc\n") == (0, b"ABC\n", b"")
    assert {headers[b"upgrade"] for _, _, headers in kubelet.requests} == {protocol}
    assert not any(b"authorization" in headers for _, _, headers in kubelet.requests)


async def test_a_terminal_and_its_sizes(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    async def show_sizes(process: Process) -> int:
        assert process.tty
        for width in (81, 101):
            while orjson.loads(await process.resize())["Width"] != width:
                pass
            await process.stdout(b"width %d\r\n" % width)
        await process.stdout((await process.stdin()).upper())
        return 5

    kubelet.command = show_sizes
    near, far = os.openpty()
    termios.tcsetwinsize(far, (24, 81))
    command = [*kubectl.command, "exec", "-it", "web", "--", "x"]
    running = await asyncio.create_subprocess_exec(*command, stdin=far, stdout=far)
    try:
        async with asyncio.timeout(60):
            await shown(near, b"width 81")
            termios.tcsetwinsize(far, (24, 101))
            running.send_signal(signal.SIGWINCH)
            await shown(near, b"width 101")
            os.write(near, b"typed\r")
            await shown(near, b"TYPED")
            assert await running.wait() == 5
    finally:
        with suppress(ProcessLookupError):
            running.kill()
        os.close(far)
        os.close(near)


async def shown(terminal: int, text: bytes) -> None:
    """Wait until a terminal shows a text."""
    seen = b""
    while text not in seen:
        seen += await asyncio.to_thread(os.read, terminal, 65536)


async def test_exec_of_much_both_ways(kubectl: Kubectl) -> None:
    await send_and_compare(kubectl, 8 << 20)


@pytest.mark.soak
async def test_exec_of_a_hundred_megabytes_both_ways(kubectl: Kubectl) -> None:
    await send_and_compare(kubectl, 100 << 20)


async def send_and_compare(kubectl: Kubectl, size: int) -> None:
    """Through ``cat`` and back."""
    data = os.urandom(1 << 20) * (size >> 20)
    code, out, err = await kubectl("exec", "-i", "web", "--", "cat", given=data)
    assert (code, err) == (0, b"")
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


async def test_attach(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    async def greet(process: Process) -> int:
        await process.stdout(b"attached\n")
        await process.stdout((await process.stdin()).upper())
        return 0

    kubelet.command = greet
    code, out, _ = await kubectl("attach", "-i", "web", given=b"typed\n")
    assert (code, out) == (0, b"attached\nTYPED\n")


async def test_copying_files(kubectl: Kubectl, kubelet: StandInKubelet, tmp_path: Path) -> None:
    kubelet.command = run_locally
    source = tmp_path / "there.bin"
    source.write_bytes(os.urandom(300_000))
    code, _, err = await kubectl("cp", str(source), f"web:{kubelet.folder}/back.bin")
    assert code == 0, err
    code, _, err = await kubectl("cp", f"web:{kubelet.folder}/back.bin", str(tmp_path / "back.bin"))
    assert code == 0, err
    assert (tmp_path / "back.bin").read_bytes() == source.read_bytes()


async def test_port_forward(kubectl: Kubectl) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(shout, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    forwarding = await kubectl.start("port-forward", "pod/web", f":{port}")
    try:
        assert forwarding.stdout is not None
        line = (await forwarding.stdout.readline()).decode()
        local = int(line.split("127.0.0.1:")[1].split(" ")[0])

        async def ask(text: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(text + b"\n")
            answer = await reader.readline()
            writer.close()
            return answer

        answers = await asyncio.gather(*(ask(b"word %d" % number) for number in range(8)))
        assert answers == [b"WORD %d\n" % number for number in range(8)]
    finally:
        forwarding.terminate()
        await forwarding.wait()
        listening.close()


async def test_proxy(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    """Logs and streams through ``kubectl proxy``, which upgrades on behalf of its clients."""

    async def greet(process: Process) -> int:
        await process.stdout(b"hello")
        return 0

    kubelet.command = greet
    kubelet.log("default", "web").write(b"one\n")
    proxying = await kubectl.start("proxy", "--port=0", "--reject-paths=^$", "--reject-methods=^$")
    pod = "/api/v1/namespaces/default/pods/web"
    try:
        assert proxying.stdout is not None
        line = (await proxying.stdout.readline()).decode()
        base = f"http://{line.split()[-1]}"
        async with aiohttp.ClientSession() as session, asyncio.timeout(60):
            async with session.get(f"{base}{pod}/log") as answer:
                assert (answer.status, await answer.read()) == (200, b"one\n")
            url = f"{base}{pod}/exec?command=x&stdout=1"
            async with session.ws_connect(url, protocols=("v5.channel.k8s.io",), origin=base) as socket:
                out = [message.data async for message in socket]
        assert b"\1hello" in out
    finally:
        proxying.terminate()
        await proxying.wait()


async def test_debug(kubectl: Kubectl, kubelet: StandInKubelet) -> None:
    """An ephemeral container is added and entered, by today's kubectl: what 1.20 asks for is gone."""

    async def greet(process: Process) -> int:
        await process.stdout(b"in %s\n" % process.container[2].encode())
        return 0

    kubelet.command = greet
    kubectl.command[0] = find_client("kubectl", "KUBECTL")
    flags = ("--image=busybox", "--container=tool", "--attach=false", "--profile=general")
    code, out, err = await kubectl("debug", "web", *flags)
    assert (code, out) == (0, b""), err
    code, out, err = await kubectl("attach", "web", "-c", "tool")
    assert (code, out) == (0, b"in tool\n"), err
