"""Runs random clients against real server processes on one store, with kills and pauses, and checks the history."""

from __future__ import annotations

import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from pilothouse.credentials.pki import Pki
from pilothouse.testing.model.clients import MAPS, NAMESPACE, Client, Lister, Watching, Writer
from pilothouse.testing.model.history import History
from pilothouse.testing.model.model import violations

_READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, with how many of what."""

    seconds: float = 6.0
    servers: int = 1
    workers: int = 1
    """Processes of each server."""
    writers: int = 4
    watchers: int = 3
    objects: int = 8
    seed: int = 1
    every: float = 2.0
    """Seconds between two faults, on average."""


class ServerProcess:
    """One server of several on the same data; killed, paused and started again."""

    def __init__(self, data: Path, port: int, workers: int = 1) -> None:
        self.port, self._data, self._workers = port, data, workers
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "pilothouse", "serve", "--data-dir", str(self._data)]
        command += ["--bind-address", "127.0.0.1", "--secure-port", str(self.port), f"--workers={self._workers}"]
        with self._data.with_suffix(f".{self.port}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def wait_ready(self, tls: ssl.SSLContext) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=10, context=tls)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except (OSError, HTTPException):
                time.sleep(0.05)
            finally:
                connection.close()
        raise RuntimeError(f"the server on port {self.port} did not get ready")

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def signal_worker(self, number: int, choice: random.Random) -> None:
        """Send a signal to one of the processes that serve beside the first."""
        if self._process is not None:
            pid = self._process.pid
            crew = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            with suppress(ProcessLookupError, IndexError):
                os.kill(int(choice.choice(crew)), number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def check(data: Path, plan: Plan) -> tuple[History, list[str]]:
    """Run the plan; what happened, and what of it is wrong."""
    servers = [ServerProcess(data, free_port(), plan.workers) for _ in range(plan.servers)]
    try:
        servers[0].start()
        tls = tls_of(data)
        servers[0].wait_ready(tls)
        for server in servers[1:]:
            server.start()
        for server in servers[1:]:
            server.wait_ready(tls)
        return _run(servers, tls, plan)
    finally:
        for server in servers:
            server.kill()


def _run(servers: list[ServerProcess], tls: ssl.SSLContext, plan: Plan) -> tuple[History, list[str]]:
    history, over, done = History(), threading.Event(), threading.Event()
    ports = [server.port for server in servers]
    choice = random.Random(plan.seed)
    start = begin(ports[0], tls)
    shared = (ports, tls, history)
    watchers = [Watching(*shared, done, choice.randrange(1 << 30), after=start) for _ in range(plan.watchers)]
    others: list[Client] = [Lister(*shared, over, choice.randrange(1 << 30)) for _ in range(2)]
    others += [
        Writer(*shared, over, choice.randrange(1 << 30), name=f"w{number}", objects=plan.objects)
        for number in range(plan.writers)
    ]
    for client in (*watchers, *others):
        client.start()
    _disturb(servers, tls, plan, choice)
    over.set()
    for client in others:
        client.join()
    await_sight(watchers, max((write.version for write in history.written), default=0))
    done.set()
    for client in watchers:
        client.join()
    failed = [f"a client failed: {client.failure!r}" for client in (*watchers, *others) if client.failure is not None]
    return history, failed + violations(history)


def _disturb(servers: list[ServerProcess], tls: ssl.SSLContext, plan: Plan, choice: random.Random) -> None:
    """Kill and pause servers at random until the time is up; at the end all are there."""
    ends = time.monotonic() + plan.seconds
    while time.monotonic() < ends:
        time.sleep(min(choice.uniform(0.5, 1.5) * plan.every, max(0.0, ends - time.monotonic())))
        server = choice.choice(servers)
        if plan.workers > 1 and choice.random() < 0.7:
            server.signal_worker(signal.SIGKILL, choice)
        elif choice.random() < 0.5:
            server.kill()
            server.start()
            server.wait_ready(tls)
        else:
            server.signal(signal.SIGSTOP)
            time.sleep(choice.uniform(0.1, 0.6))
            server.signal(signal.SIGCONT)


def await_sight(watchers: list[Watching], newest: int) -> None:
    """Let every watch see the last write that was acknowledged: so the log is complete."""
    deadline = time.monotonic() + _READY_SECONDS
    while any(watcher.at < newest and watcher.is_alive() for watcher in watchers):
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def begin(port: int, tls: ssl.SSLContext) -> int:
    """Make the namespace; the version from which on everything is watched."""
    client = Client([port], tls, History(), threading.Event(), 0)
    client.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    while True:
        status, answer = client.call("GET", MAPS)
        if status == 200:
            client.disconnect()
            return int(answer["metadata"]["resourceVersion"])


def tls_of(data: Path) -> ssl.SSLContext:
    """How its administrator speaks TLS, once the server has made certificates."""
    pki = Pki(data / "pki")
    deadline = time.monotonic() + _READY_SECONDS
    while not pki.admin_key.exists() or not pki.ca_cert.exists():
        if time.monotonic() > deadline:
            raise RuntimeError("the server made no certificates")
        time.sleep(0.05)
    time.sleep(0.2)
    context = ssl.create_default_context(cafile=str(pki.ca_cert))
    context.load_cert_chain(pki.admin_cert, pki.admin_key)
    return context


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
