"""kubectl logs, exec, attach, cp and port-forward against a kubelet that speaks the real protocols."""

from __future__ import annotations

import asyncio
import hashlib
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import find_client

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.kubelet import Process, StandInKubelet, run_locally


class Kubectl:
    """kubectl, as a child of the test's own loop."""

    def __init__(self, server: InProcessServer, environment: dict[str, str]) -> None:
        self._start = [find_client("kubectl", "KUBECTL"), f"--kubeconfig={server.kubeconfig}"]
        self._environment = {**os.environ, **environment}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._start, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._environment, limit=1 << 28
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


@pytest.fixture
async def kubectl(kubelet: StandInKubelet, request: pytest.FixtureRequest) -> AsyncIterator[Kubectl]:
    way = request.node.callspec.params.get("kubelet")
    spdy = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
    async with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        assert (await server.request("POST", "/api/v1/nodes", kubelet.node("node-1"))).status == 201
        pod = {
            "metadata": {"name": "web"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]},
        }
        assert (await server.request("POST", "/api/v1/namespaces/default/pods", pod)).status == 201
        running = {"status": {"phase": "Running"}}
        headers = {"Content-Type": "application/merge-patch+json"}
        path = "/api/v1/namespaces/default/pods/web/status"
        assert (await server.request("PATCH", path, running, headers)).status == 200
        yield Kubectl(server, spdy if way == "spdy" else {})


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


async def test_exec_of_much_both_ways(kubectl: Kubectl) -> None:
    data = os.urandom(1 << 20) * 24
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
