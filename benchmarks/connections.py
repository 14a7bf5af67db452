"""Measures connections beside kube-apiserver: ``connections.py --kube-apiserver PATH --etcd PATH [--rounds N]``.

    HTTP/2        GETs with h2load on 1 and 16 connections of ten streams each, and HTTP/1.1 with wrk on 16
    exec          a large ``cat`` through a stand-in kubelet, out of a container and into it, by kubectl
    port-forward  as many bytes through it, by kubectl
    streams       memory and processor time of a thousand idle exec streams
    watches       one event to a thousand watches on 10 HTTP/2 connections, and on 1,000 of HTTP/1.1

Both servers run at the same time and are measured in turns, part by part and round by round, with the same kubelet.
Beside rates it prints the processor time of the server, which depends less on who else is busy. Needs h2load
(nghttp2-client), wrk, and kubectl (``make clients``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from differential_answers import TOKEN  # noqa: E402 (after the path is known)
from differential_servers import plain_kube_apiserver  # noqa: E402
from launching import free_port, running_server  # noqa: E402
from pilothouse.testing.kubelet import Process, StandInKubelet  # noqa: E402

NAMESPACE = "/api/v1/namespaces/default"
KUBECTL = str(HERE.parent / ".tools" / "kubectl")
MEGABYTE = 1 << 20


class Server:
    """One that runs, and what it has used so far."""

    def __init__(self, name: str, port: int, pid: int, kubectl: list[str]) -> None:
        self.name, self.pid, self.kubectl = name, pid, kubectl
        self.url = f"https://127.0.0.1:{port}"

    @property
    def processor_seconds(self) -> float:
        """User and system time."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """Resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0


async def main() -> int:
    """Measure both, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kube-apiserver")
    parser.add_argument("--etcd")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=("http2", "exec", "forward", "idle", "watches"))
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-bench-")))
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        servers = [stack.enter_context(own_server(folder, tokens))]
        if options.kube_apiserver:
            servers.append(stack.enter_context(other_server(folder, tokens, options)))
        for part in parts(options.quick) if options.only is None else [options.only]:
            for _ in range(options.rounds):
                for server in servers:
                    print(server.name, flush=True)
                    await parts(options.quick)[part](server)
    return 0


@contextmanager
def own_server(folder: Path, tokens: Path) -> Any:
    """Ours."""
    port = free_port()
    flags = [f"--data-dir={folder / 'data'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
    flags += [f"--token-auth-file={tokens}", "--disable-admission-plugins=ServiceAccount"]
    with running_server(flags, port, TOKEN, folder / "own.log") as running:
        yield Server("ours", port, running.pid, kubectl_of(port))


@contextmanager
def other_server(folder: Path, tokens: Path, options: argparse.Namespace) -> Any:
    """kube-apiserver."""
    place = folder / "other"
    place.mkdir()
    with plain_kube_apiserver(options.kube_apiserver, options.etcd, place, tokens) as port:
        found = subprocess.run(["pgrep", "-f", f"secure-port {port} "], capture_output=True, text=True, check=True)
        yield Server("kube-apiserver", port, int(found.stdout.split()[0]), kubectl_of(port))


def kubectl_of(port: int) -> list[str]:
    """kubectl for a server."""
    return [KUBECTL, f"--server=https://127.0.0.1:{port}", "--insecure-skip-tls-verify", f"--token={TOKEN}"]


def parts(quick: bool) -> dict[str, Callable[[Server], Coroutine[Any, Any, None]]]:
    """What there is to measure."""
    megabytes, count = (64, 20_000) if quick else (256, 60_000)
    return {
        "http2": lambda server: measure_requests(server, count),
        "exec": lambda server: with_kubelet(server, lambda kubelet: measure_exec(server, kubelet, megabytes)),
        "forward": lambda server: with_kubelet(server, lambda _: measure_forwarding(server, megabytes)),
        "idle": lambda server: with_kubelet(server, lambda kubelet: measure_idle(server, kubelet, 1000)),
        "watches": lambda server: measure_watches(server, 1000),
    }


async def measure_requests(server: Server, count: int) -> None:
    """GETs of one config map."""
    async with client(server) as session:
        body = {"metadata": {"name": "bench"}, "data": {"a": "1", "b": "x" * 80}}
        await session.post(f"{server.url}{NAMESPACE}/configmaps", json=body)
    url = f"{server.url}{NAMESPACE}/configmaps/bench"
    for connections in (1, 16):
        words = ["h2load", f"-n{count}", f"-c{connections}", "-m10", "-H", f"authorization: Bearer {TOKEN}", url]
        rate = await timed(server, count, words, r"finished in .*, ([0-9.]+) req/s")
        show(f"HTTP/2, {connections} connections with 10 streams", rate)
    words = ["wrk", "-t1", "-c16", "-d4s", "-H", f"Authorization: Bearer {TOKEN}", url]
    show("HTTP/1.1, 16 connections", await timed(server, 0, words, r"Requests/sec:\s+([0-9.]+)", r"(\d+) requests in"))


async def timed(server: Server, count: int, words: list[str], rate: str, counted: str = "") -> tuple[float, float]:
    """Requests a second, and microseconds of processor a request."""
    before = server.processor_seconds
    running = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    out = (await running.communicate())[0].decode()
    used = server.processor_seconds - before
    found = re.search(rate, out)
    assert found is not None, out
    if counted:
        number = re.search(counted, out)
        count = int(number[1]) if number else 0
    return float(found[1]), used / count * 1e6


def show(name: str, figures: tuple[float, float], unit: str = "/s", cost: str = "µs of processor each") -> None:
    """One line."""
    print(f"  {name:45s}{figures[0]:12,.0f} {unit:6s}{figures[1]:10.1f} {cost}", flush=True)


async def with_kubelet(server: Server, work: Callable[[StandInKubelet], Coroutine[Any, Any, None]]) -> None:
    """Give the server a node and a pod on it."""
    async with StandInKubelet() as kubelet, client(server) as session:
        await session.post(f"{server.url}/api/v1/nodes", json=kubelet.node("bench"))
        pod = {
            "metadata": {"name": "bench"},
            "spec": {"nodeName": "bench", "containers": [{"name": "c", "image": "x"}]},
        }
        await session.post(f"{server.url}{NAMESPACE}/pods", json=pod)
        merge = {"Content-Type": "application/merge-patch+json"}
        running = json.dumps({"status": {"phase": "Running"}})
        await session.patch(f"{server.url}{NAMESPACE}/pods/bench/status", data=running, headers=merge)
        try:
            await work(kubelet)
        finally:
            await session.delete(f"{server.url}{NAMESPACE}/pods/bench?gracePeriodSeconds=0")
            await session.delete(f"{server.url}/api/v1/nodes/bench")


async def measure_exec(server: Server, kubelet: StandInKubelet, megabytes: int) -> None:
    """So much output of a command and so much input, by WebSocket and by SPDY."""

    async def write(process: Process) -> int:
        piece = b"x" * 65536
        for _ in range(megabytes * 16):
            await process.stdout(piece)
        return 0

    async def read(process: Process) -> int:
        missing = megabytes * MEGABYTE
        while missing > 0 and (data := await process.stdin()):
            missing -= len(data)
        return 0 if not missing else 1

    for name, flag in (("WebSocket", "true"), ("SPDY", "false")):
        kubelet.command = write
        await measure_command(server, f"exec, output, {name}", flag, megabytes)
        kubelet.command = read
        await measure_command(server, f"exec, input, {name}", flag, megabytes, "-i")


async def measure_command(server: Server, name: str, websockets: str, megabytes: int, *flags: str) -> None:
    """One run of a command in the pod."""
    with tempfile.TemporaryFile() as given:
        given.truncate(megabytes * MEGABYTE)
        before, started = server.processor_seconds, time.monotonic()
        running = await asyncio.create_subprocess_exec(
            *server.kubectl,
            "exec",
            *flags,
            "bench",
            "--",
            "x",
            stdin=given,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets},
        )
        assert await running.wait() == 0
    show(name, rates(server, before, started, megabytes), "MB/s", "ms of processor a MB")


def rates(server: Server, before: float, started: float, megabytes: int) -> tuple[float, float]:
    """Megabytes a second, and milliseconds of processor for each."""
    return megabytes / (time.monotonic() - started), (server.processor_seconds - before) / megabytes * 1e3


async def measure_forwarding(server: Server, megabytes: int) -> None:
    """So many bytes out of a port."""

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _number in range(megabytes * 16):
            writer.write(b"x" * 65536)
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(pour, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    running = await asyncio.create_subprocess_exec(
        *server.kubectl, "port-forward", "pod/bench", f":{port}", stdout=subprocess.PIPE
    )
    assert running.stdout is not None
    local = int((await running.stdout.readline()).decode().split("127.0.0.1:")[1].split(" ")[0])
    before, started = server.processor_seconds, time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", local)
    missing = megabytes * MEGABYTE
    while missing and (data := await reader.read(1 << 18)):
        missing -= len(data)
    show("port-forward", rates(server, before, started, megabytes), "MB/s", "ms of processor a MB")
    writer.close()
    running.terminate()
    await running.wait()
    listening.close()


async def measure_idle(server: Server, kubelet: StandInKubelet, count: int) -> None:
    """Streams that say nothing."""
    ended = asyncio.Event()

    async def wait(process: Process) -> int:
        await ended.wait()
        return 0

    kubelet.command = wait
    memory = server.memory
    url = f"{server.url}{NAMESPACE}/pods/bench/exec?command=x&stdin=1&stdout=1"
    async with client(server) as session, AsyncExitStack() as stack:
        for _ in range(count):
            socket = session.ws_connect(url, protocols=("v5.channel.k8s.io",), method="GET")
            await stack.enter_async_context(socket)
        await asyncio.sleep(1)
        grown, before = server.memory - memory, server.processor_seconds
        await asyncio.sleep(10)
        used = (server.processor_seconds - before) / 10
        print(
            f"  {count} idle exec streams: {grown / count / 1024:.0f} KB each, {used * 100:.1f} % of a processor",
            flush=True,
        )
        ended.set()


async def measure_watches(server: Server, count: int) -> None:
    """Events to many watches, carried in two ways."""
    for name, connections in (("10 HTTP/2 connections", 10), ("HTTP/1.1", count)):
        used = await asyncio.to_thread(_fan_out, server, count, connections)
        print(f"  one event to {count} watches, {name}: {used * 1e3:.1f} ms of processor", flush=True)


def _fan_out(server: Server, count: int, connections: int) -> float:
    """Seconds of processor for one event, written fifty times."""
    found = subprocess.run(
        [sys.executable, str(HERE / "watching.py"), server.url, TOKEN, str(count), str(connections), str(server.pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout)


@asynccontextmanager
async def client(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
