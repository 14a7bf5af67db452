"""Measures what passing a request on costs: ``proxied.py [--etcd PATH --kube-apiserver PATH --sample-apiserver PATH]``.

Backends are asked directly and then as aggregated APIs through a fresh Pilothouse, and through a kube-apiserver
where there is one, in turns: a server with no logic (``limit.py``), which shows what the proxy itself takes, an API
server of ours (``examples/wardle``), and Kubernetes' sample-apiserver where there is one; these show what a user pays
for the detour. Beside rates it prints the processor time that the proxy and the backend take for one request, which
depends less on who else is busy on the machine, and how many times that of a direct one both take together: for one
client and for sixteen, each round and then the medians. The servers written in Go need ``--etcd``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

from launching import await_ready, free_port, running_server, stop  # noqa: E402 (after the path is known)
from pilothouse.credentials.pki import Pki, ensure_pki  # noqa: E402
from pilothouse.testing.aggregated_servers import (  # noqa: E402
    API_SERVICES,
    SERVICES,
    aggregated_flags,
    api_service,
    front_proxy_flags,
    loopback_service,
    write_kubeconfig,
)

TOKEN = "benchtoken"
THINGS = "/apis/bench.example.com/v1/things"
WARDLE = "wardle.example.com"


class Server(NamedTuple):
    """One that runs."""

    name: str
    url: str
    pid: int


class Figures(NamedTuple):
    """What was measured of one way to a backend."""

    rate: float
    proxy: float
    backend: float


def main() -> int:
    """Measure both backends, directly and through each server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kube-apiserver", help="another proxy")
    parser.add_argument("--sample-apiserver", help="another backend")
    parser.add_argument("--etcd", help="the store of the other proxy and backend")
    parser.add_argument("--profile", help="write a flame graph of ours to this file (needs py-spy)")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("The benchmark needs wrk on the PATH (Debian and Ubuntu: apt install wrk).", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-bench-")))
        (folder / "tokens.csv").write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
        ensure_pki(folder, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
        proxies = [stack.enter_context(own_server(folder))]
        if options.kube_apiserver:
            proxies.append(stack.enter_context(other_server(folder, options)))
        bare = stack.enter_context(bare_backend(folder))
        for proxy in proxies:
            register(proxy.url, bare, "things", "bench.example.com", "v1", THINGS)
        backends = [(bare, THINGS)]
        real = stack.enter_context(real_backend(folder, proxies[0].url))
        backends.append((real, make_flunder(proxies, real, "ours", "v1alpha1")))
        if options.sample_apiserver:
            sample = stack.enter_context(sample_backend(folder, proxies[0].url, options))
            backends.append((sample, make_flunder(proxies, sample, "sample", "v1beta1")))
        if options.profile:
            profile(stack, options.profile, proxies[0].pid, options.seconds)
        for backend, path in backends:
            for connections in options.connections:
                print(f"{backend.name}, connections: {connections}")
                compare(backend, path, proxies, connections, options)
    return 0


def compare(backend: Server, path: str, proxies: list[Server], connections: int, options: argparse.Namespace) -> None:
    """All rounds, each directly and then through each of the proxies, and their medians."""
    ways: dict[str, Server | None] = {"directly": None, **{f"through {proxy.name}": proxy for proxy in proxies}}
    rounds: list[dict[str, Figures]] = []
    for _ in range(options.rounds):
        found = {name: measure(way, backend, path, connections, options) for name, way in ways.items()}
        show_all(found)
        rounds.append(found)
    print("  medians")
    show_all(
        {name: Figures(*map(statistics.median, zip(*(each[name] for each in rounds), strict=True))) for name in ways}
    )


def show_all(found: dict[str, Figures]) -> None:
    """A line for each way, held against the direct one."""
    for name, figures in found.items():
        show(name, figures, found["directly"])


def show(name: str, found: Figures, direct: Figures) -> None:
    """One line."""
    total = (found.proxy + found.backend) / (direct.proxy + direct.backend)
    print(
        f"  {name:24s}{found.rate:9,.0f}/s{found.proxy:8.1f} µs in the proxy{found.backend:8.1f} µs in the backend"
        f"{total:7.2f} times a direct one, {direct.rate / found.rate:.2f} times by rate",
        flush=True,
    )


def measure(proxy: Server | None, backend: Server, path: str, connections: int, options: argparse.Namespace) -> Figures:
    """Rate and processor time of one way."""
    entrance = proxy or backend
    before = [processor_seconds(each.pid) for each in (entrance, backend)]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{options.seconds}s", "-s", str(HERE / "wrk.lua")]
    environment = {**os.environ, "TOKEN": TOKEN}
    found = subprocess.run([*command, entrance.url + path], env=environment, capture_output=True, text=True, check=True)
    used = [processor_seconds(each.pid) - at for each, at in zip((entrance, backend), before, strict=True)]
    line = next(line for line in found.stdout.splitlines() if line.startswith("RESULT"))
    rate, _, _, failed, refused, _ = map(float, line.split()[1:])
    if failed or refused:
        print(f"  {failed:.0f} requests through {entrance.name} got no answer in time, {refused:.0f} were refused")
    costs = [each / (rate * options.seconds) * 1e6 for each in used]
    return Figures(rate, costs[0] if proxy else 0.0, costs[1])


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shared_flags(folder: Path, port: int) -> list[str]:
    """What both API servers are told."""
    pki = Pki(folder / "pki")
    return [
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--token-auth-file={folder}/tokens.csv",
        f"--tls-cert-file={pki.serving_cert}",
        f"--tls-private-key-file={pki.serving_key}",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=RBAC",
        *front_proxy_flags(pki),
    ]


@contextmanager
def own_server(folder: Path) -> Iterator[Server]:
    """Ours."""
    port = free_port()
    flags = [f"--data-dir={folder}/data", *shared_flags(folder, port)]
    with running_server(flags, port, TOKEN, folder / "server.log") as running:
        yield Server("ours", running.url, running.pid)


@contextmanager
def other_server(folder: Path, options: argparse.Namespace) -> Iterator[Server]:
    """kube-apiserver on an etcd of its own."""
    port = free_port()
    with ExitStack() as stack:
        store = start_etcd(stack, options.etcd, folder / "kube-apiserver-etcd")
        words = [options.kube_apiserver, f"--etcd-servers={store}", *shared_flags(folder, port)]
        process = start(stack, words, folder / "kube-apiserver.log")
        await_ready(process, port, TOKEN, folder / "kube-apiserver.log")
        yield Server("kube-apiserver", f"https://127.0.0.1:{port}", process.pid)


@contextmanager
def bare_backend(folder: Path) -> Iterator[Server]:
    """A server that gives the same bytes whatever it is asked."""
    port, pki = free_port(), Pki(folder / "pki")
    with ExitStack() as stack:
        words = [sys.executable, str(HERE / "limit.py"), str(port), str(pki.serving_cert), str(pki.serving_key)]
        process = start(stack, words, folder / "limit.log")
        await_listening(port)
        yield Server("a backend with no logic", f"https://127.0.0.1:{port}", process.pid)


@contextmanager
def real_backend(folder: Path, main_server: str) -> Iterator[Server]:
    """An API server that others may stand in front of."""
    port = free_port()
    kubeconfig = write_kubeconfig(folder / "main.kubeconfig", main_server, Pki(folder / "pki"), TOKEN)
    words = [sys.executable, "-m", "examples.wardle", *aggregated_flags(port, kubeconfig)]
    with ExitStack() as stack:
        process = start(stack, [*words, f"--data-dir={folder}/wardle"], folder / "wardle.log")
        await_ready(process, port, TOKEN, folder / "wardle.log")
        yield Server("an API server", f"https://127.0.0.1:{port}", process.pid)


@contextmanager
def sample_backend(folder: Path, main_server: str, options: argparse.Namespace) -> Iterator[Server]:
    """Kubernetes' own example of an aggregated API server, on an etcd of its own."""
    port = free_port()
    kubeconfig = write_kubeconfig(folder / "main.kubeconfig", main_server, Pki(folder / "pki"), TOKEN)
    with ExitStack() as stack:
        store = start_etcd(stack, options.etcd, folder / "sample-etcd")
        words = [options.sample_apiserver, f"--etcd-servers={store}", f"--cert-dir={folder}/sample-certs"]
        process = start(stack, [*words, *aggregated_flags(port, kubeconfig)], folder / "sample-apiserver.log")
        await_ready(process, port, TOKEN, folder / "sample-apiserver.log")
        yield Server("sample-apiserver", f"https://127.0.0.1:{port}", process.pid)


def start_etcd(stack: ExitStack, binary: str, folder: Path) -> str:
    """An etcd that ends with the stack, and its address."""
    store, peer = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
    words = [binary, f"--data-dir={folder}", f"--listen-client-urls={store}", f"--advertise-client-urls={store}"]
    start(stack, [*words, f"--listen-peer-urls={peer}", "--log-level=error"], folder.with_suffix(".log"))
    return store


def start(stack: ExitStack, words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A process that ends with the stack."""
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, cwd=HERE.parent)
    stack.callback(stop, process)
    return process


def profile(stack: ExitStack, file: str, pid: int, seconds: int) -> None:
    """Record what a process does while it is measured."""
    words = ["py-spy", "record", "-o", file, "-f", "raw", "--nonblocking", "-r", "200", "-d", str(3 * seconds)]
    stack.enter_context(subprocess.Popen([*words, "-p", str(pid)], stdout=subprocess.DEVNULL))


def await_listening(port: int) -> None:
    """Return when somebody listens."""
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def make_flunder(proxies: list[Server], backend: Server, service: str, version: str) -> str:
    """Put a server of flunders behind the proxies and give it an object, whose path is returned."""
    path = f"/apis/{WARDLE}/{version}/namespaces/default/flunders"
    for proxy in proxies:
        register(proxy.url, backend, service, WARDLE, version, path)
    flunder = {"apiVersion": f"{WARDLE}/{version}", "kind": "Flunder", "metadata": {"name": "one"}}
    if call(proxies[0].url + path, {**flunder, "spec": {"reference": "two"}}) != 201:
        raise SystemExit(f"{backend.name} takes no object")
    return f"{path}/one"


def register(url: str, backend: Server, service: str, group: str, version: str, path: str) -> None:
    """Put a backend behind a server and wait until it answers."""
    port = int(backend.url.rpartition(":")[2])
    while call(url + SERVICES, loopback_service(service, port)) == 404:
        time.sleep(0.1)  # the namespace comes soon after the start
    call(url + API_SERVICES, api_service(group, version, service, port))
    for _ in range(600):
        if call(url + path) == 200:
            return
        time.sleep(0.1)
    raise SystemExit("the backend does not answer through the server")


def call(url: str, body: dict[str, Any] | None = None) -> int:
    """The status of one request."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    try:
        context = ssl._create_unverified_context()
        return int(urllib.request.urlopen(request, context=context).status)
    except urllib.error.HTTPError as error:
        return error.code


if __name__ == "__main__":
    sys.exit(main())
