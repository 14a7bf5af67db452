"""Fixtures shared by tests that talk to a real server: one process for the whole run, found by every test."""

from __future__ import annotations

import gc
import logging
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from pilothouse.apis import resources, types
from pilothouse.testing.definitions import establish
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.ports import free_port

ROOT = Path(__file__).parent.parent
READY_WITHIN = 120.0
"""A machine busy with other things may take that long."""
HELD_AT_MOST = 0.5
"""Requests are to hold the loop for no more than 20 ms; what is imported at the first use of a part takes longer."""

# How long an example takes, to be drawn and to be tried, says more about the machine than about the code.
settings.register_profile("pilothouse", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pilothouse")
# For constants to try, hypothesis would parse all our modules, in every process: that takes longer than its tests do.
providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep what collecting leaves behind, for the whole run, from the garbage collector.

    Eleven thousand tests and all modules are most of a process: going through them again and again costs a fifth of
    the time of tests that start servers. What tests themselves leave is collected as ever.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@dataclass
class Endpoint:
    """How to reach a running server as its administrator."""

    port: int
    data: Path

    @property
    def kubeconfig(self) -> Path:
        return self.data / "admin.kubeconfig"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """For requests made here; whoever sets something makes one of their own."""
        return self.tls()

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.data / "pki" / "ca.crt"))
        context.load_cert_chain(self.data / "pki" / "admin.crt", self.data / "pki" / "admin.key")
        return context

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """One request on a connection of its own: status, headers, decoded body."""
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=120, context=self._context)
        sent = {"Accept": "application/json", **(headers or {})}
        if isinstance(body, dict | list):
            body = orjson.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        kind = answer.getheader("Content-Type", "")
        decoded: Any = orjson.loads(data) if kind.startswith("application/json") and data else data
        joined: dict[str, str] = {}
        for name, value in answer.getheaders():
            joined[name.lower()] = f"{joined[name.lower()]}, {value}" if name.lower() in joined else value
        return answer.status, joined, decoded

    def establish(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Create a custom resource definition and wait until clients can use what it defines."""

        def ask(method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> tuple[int, Any]:
            status, _, answer = self.call(method, path, body, dict(headers or {}))
            return status, answer

        return establish(ask, definition)

    def namespace(self, name: str) -> str:
        """A namespace of the test's own, with the service account that pods need."""
        self.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
        return name


@dataclass
class Server(Endpoint):
    """A server that is a process."""

    process: subprocess.Popen[bytes]
    log: Path


@dataclass
class HostedServer(Endpoint):
    """A server in a thread of this process."""

    closing: ExitStack

    def stop(self) -> None:
        """End it, gracefully; once is enough."""
        self.closing.close()


def start_server(data: Path, *flags: str, within: float = READY_WITHIN) -> Server:
    """Start the real command and wait until it is ready."""
    port = free_port()
    log = data.with_suffix(".log")
    command = [
        sys.executable,
        "-m",
        "pilothouse",
        "serve",
        "--controllers=-*",
        "--workers=1",  # on every machine, whatever it would decide
        "--data-dir",
        str(data),
        "--secure-port",
        str(port),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--bind-address", "127.0.0.1", *flags], stdout=output, stderr=subprocess.STDOUT
        )
    server = Server(port, data, process, log)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if server.call("GET", "/readyz")[0] == 200:
                return server
        except OSError:
            time.sleep(0.02)
    stop_server(server)
    raise RuntimeError(f"the server did not get ready:\n{log.read_text(errors='replace')[-4000:]}")


def stop_server(server: Server) -> int:
    """Stop gracefully; the exit code."""
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
    try:
        return server.process.wait(120)
    except subprocess.TimeoutExpired:
        server.process.kill()
        return server.process.wait()


def longest_hold(server: Server) -> float:
    """Seconds of processor time of the longest turn of the server's event loop, as it has measured itself."""
    page: bytes = server.call("GET", "/metrics")[2]
    found = re.search(rb"^pilothouse_event_loop_longest_hold_seconds (\S+)$", page, re.MULTILINE)
    assert found is not None
    return float(found[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not need one of their own."""
    running = start_server(tmp_path_factory.mktemp("server") / "data")
    yield running
    held = longest_hold(running)
    code = stop_server(running)
    log = running.log.read_text(errors="replace")
    assert code == 0, log[-4000:]
    assert "Traceback" not in log, log[-4000:]
    assert held < HELD_AT_MOST, f"one turn of the event loop took {held:.2f} s of processor time:\n{log[-4000:]}"


@pytest.fixture
def launch() -> Iterator[Callable[..., Server]]:
    """Starts servers of the test's own; whatever is still running at its end is stopped."""
    yield from _launch()


@pytest.fixture(scope="module")
def launch_for_module() -> Iterator[Callable[..., Server]]:
    """Starts servers for the tests of a module."""
    yield from _launch()


def _launch() -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(data: Path, *flags: str, within: float = READY_WITHIN) -> Server:
        # Tests that change files need not wait as long as one would run the server with.
        running.append(start_server(data, "--file-check-interval=100ms", *flags, within=within))
        return running[-1]

    yield start
    for each in running:
        stop_server(each)


@pytest.fixture
def host() -> Iterator[Callable[..., HostedServer]]:
    """Starts servers as ``launch`` does, but in this process, which takes a fifth of it.

    For tests that ask a server and look at its files; its process, its log and its exit are those of ``launch``.
    """
    with ExitStack() as all_servers:

        def start(data: Path, *flags: str) -> HostedServer:
            closing = all_servers.enter_context(ExitStack())
            server = closing.enter_context(InProcessServer("--file-check-interval=100ms", *flags, data_dir=data))
            return HostedServer(server.port, data, closing)

        yield start


@pytest.fixture(scope="session")
def kubectl(server: Server) -> Kubectl:
    """The real kubectl, pointed at the shared server."""
    return Kubectl(find_client("kubectl", "KUBECTL"), server.kubeconfig)


def find_client(name: str, variable: str) -> str:
    """A client's path: named by the environment, installed by ``make clients``, or on the PATH."""
    for candidate in (os.environ.get(variable), str(ROOT / ".tools" / name), shutil.which(name)):
        if candidate and Path(candidate).exists():
            return candidate
    raise RuntimeError(f"{name} is missing: run `make clients`")


@dataclass
class Kubectl:
    """Runs kubectl and gives its output; a failure is the test's failure."""

    path: str
    kubeconfig: Path

    def __call__(self, *words: str, stdin: str | None = None, fails: bool = False) -> str:
        done = subprocess.run(
            [self.path, "--kubeconfig", str(self.kubeconfig), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=READY_WITHIN,
            check=False,
            env={**go_environment(), "HOME": str(self.kubeconfig.parent)},
        )
        if fails:
            assert done.returncode != 0, done.stdout
            return done.stderr
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def popen(self, *words: str) -> subprocess.Popen[str]:
        """Start a kubectl that goes on, such as ``get -w``."""
        return subprocess.Popen(
            [self.path, "--kubeconfig", str(self.kubeconfig), *words], stdout=subprocess.PIPE, text=True
        )


def go_environment() -> dict[str, str]:
    """For clients that run for a moment: collecting garbage is a fifth of their work."""
    return {"PATH": os.environ.get("PATH", ""), "GOGC": "off"}


@pytest.fixture
def kept_log() -> Iterator[None]:
    """For tests that run a command in this process: commands set the log of the whole up, to streams of the test."""
    root, ours = logging.getLogger(), logging.getLogger("pilothouse")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


@pytest.fixture(scope="module", autouse=True)
def _no_legacy_left() -> Iterator[None]:
    """Versions that are served no more, once known to a process, stay so: other tests are not to know them."""
    known = set(types.names())
    yield
    if not types.add_legacy.cache_info().currsize:
        return
    for version in list(resources.table().values()):
        version.resources[:] = [row for row in version.resources if not row.legacy]
        if version.legacy:
            del resources.table()[version.group_version]
    for name in set(types.names()) - known:
        del types._blocks()[name]
    types.add_legacy.cache_clear()
    resources.add_legacy.cache_clear()
