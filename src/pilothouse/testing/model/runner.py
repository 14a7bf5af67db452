"""Runs random clients against real server processes on one store, with faults, and checks the history.

One server on its embedded store is killed and paused. Several servers share an etcd, whose members are killed, paused
and cut off from each other, too, and change their leader.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from pilothouse.credentials.pki import Pki, ensure_pki
from pilothouse.testing.etcd_process import SURVIVES_KILLS, EtcdCluster
from pilothouse.testing.model.clients import MAPS, NAMESPACE, Address, Caller, Client, Lister, Watching, Writer
from pilothouse.testing.model.cuts import Cuts
from pilothouse.testing.model.history import DONE, History
from pilothouse.testing.model.model import violations
from pilothouse.testing.networks import Host, Network
from pilothouse.testing.ports import free_port

_READY_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, with how many of what."""

    seconds: float = 6.0
    writes: int = 0
    """It goes on until so many are acknowledged, however busy the machine."""
    servers: int = 1
    workers: int = 1
    """Processes of each server."""
    members: int = 0
    """Members of the etcd that all servers share; 0 for one server on its embedded store."""
    writers: int = 4
    watchers: int = 3
    objects: int = 8
    seed: int = 1
    every: float = 2.0
    """Seconds between two faults, on average."""
    networked: bool = False
    """Whether every server and member is a host of its own, and the faults are those of the network between them."""
    longest: float = 2.0
    """Seconds that a fault of the network lasts at most."""


class ServerProcess:
    """One server, in a folder of its own; killed, paused and started again. It runs on a host, or on this one."""

    def __init__(self, data: Path, port: int, *flags: str, host: Host | None = None) -> None:
        self.host, self._data, self._flags = host, data, flags
        self.address: Address = ("127.0.0.1" if host is None else host.address, port)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "pilothouse", "serve", "--data-dir", str(self._data)]
        address, port = self.address
        command += ["--bind-address", address, "--secure-port", str(port), *self._flags]
        with self._data.with_suffix(f".{port}.log").open("ab") as log:
            words = command if self.host is None else self.host.command(command)
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def wait_ready(self, tls: ssl.SSLContext) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            if self.readiness(tls)[0] == 200:
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server at {self.address} did not get ready")

    def readiness(self, tls: ssl.SSLContext) -> tuple[int, str]:
        """What it answers to who asks whether it is ready; a status of 0 for no answer."""
        connection = HTTPSConnection(*self.address, timeout=10, context=tls)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException):
            return 0, ""
        finally:
            connection.close()

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
    """Run the plan in a folder that does not exist yet; what happened, and what of it is wrong."""
    if plan.servers > 1 and not plan.members:
        raise ValueError("several servers need an etcd: a plan with members")
    with ExitStack() as stack:
        network = stack.enter_context(Network(plan.members + plan.servers)) if plan.networked else None
        hosts = [] if network is None else network.hosts
        ensure_pki(data, dns_names=["localhost"], ip_addresses=["127.0.0.1", *(host.address for host in hosts)])
        tls = tls_of(data)
        etcd = (
            stack.enter_context(
                EtcdCluster(
                    plan.members, SURVIVES_KILLS, linked=plan.members > 1 and not hosts, hosts=hosts[: plan.members]
                )
            )
            if plan.members
            else None
        )
        servers = [
            _prepare(data, number, etcd, plan.workers, hosts[plan.members + number] if hosts else None)
            for number in range(plan.servers)
        ]
        for server in servers:
            stack.callback(server.kill)
            server.start()
        for server in servers:
            server.wait_ready(tls)
        choice = random.Random(plan.seed)
        if network is not None and etcd is not None:
            faults = Cuts(network, etcd, [server.host for server in servers if server.host], choice, plan.longest).all()
        else:
            faults = _faults(servers, etcd, tls, plan, choice)
        history, wrong = _run(servers, faults, tls, plan, choice)
        for server in servers:
            server.wait_ready(tls)
        return history, wrong


def _prepare(data: Path, number: int, etcd: EtcdCluster | None, workers: int, host: Host | None) -> ServerProcess:
    """A server that has the certificates of all in a folder of its own."""
    folder = data / f"server{number}"
    shutil.copytree(data / "pki", folder / "pki")
    flags = [f"--workers={workers}"]
    if etcd is not None:
        flags += [f"--etcd-servers={','.join(etcd.urls)}", f"--hostname-override=s{number}"]
    return ServerProcess(folder, free_port(), *flags, host=host)


def _run(
    servers: list[ServerProcess],
    faults: list[Callable[[], None]],
    tls: ssl.SSLContext,
    plan: Plan,
    choice: random.Random,
) -> tuple[History, list[str]]:
    history, over, done = History(), threading.Event(), threading.Event()
    addresses = [server.address for server in servers]
    start = begin(addresses[0], tls)
    shared = (addresses, tls, history)
    watchers = [Watching(*shared, done, choice.randrange(1 << 30), after=start) for _ in range(plan.watchers)]
    others: list[Client] = [Lister(*shared, over, choice.randrange(1 << 30)) for _ in range(2)]
    others += [
        Writer(*shared, over, choice.randrange(1 << 30), name=f"w{number}", objects=plan.objects)
        for number in range(plan.writers)
    ]
    for client in (*watchers, *others):
        client.start()
    _disturb(faults, plan, choice, lambda: _acknowledged(history) >= plan.writes)
    over.set()
    for client in others:
        client.join()
    await_sight(watchers, max((write.version for write in history.written), default=0))
    done.set()
    for client in watchers:
        client.join()
    failed = [f"a client failed: {client.failure!r}" for client in (*watchers, *others) if client.failure is not None]
    return history, failed + violations(history)


def _disturb(
    faults: list[Callable[[], None]], plan: Plan, choice: random.Random, is_enough: Callable[[], bool]
) -> None:
    """Let faults happen at random until the time is up; each is over when the next one comes."""
    ends = time.monotonic() + plan.seconds
    while time.monotonic() < ends:
        time.sleep(min(choice.uniform(0.5, 1.5) * plan.every, max(0.0, ends - time.monotonic())))
        choice.choice(faults)()
    patience = time.monotonic() + _READY_SECONDS
    while not is_enough() and time.monotonic() < patience:
        time.sleep(0.05)


def _acknowledged(history: History) -> int:
    return sum(write.outcome == DONE for write in history.written)


def _faults(
    servers: list[ServerProcess], etcd: EtcdCluster | None, tls: ssl.SSLContext, plan: Plan, choice: random.Random
) -> list[Callable[[], None]]:
    def kill_server() -> None:
        server = choice.choice(servers)
        server.kill()
        server.start()
        server.wait_ready(tls)

    def pause_server() -> None:
        server = choice.choice(servers)
        server.signal(signal.SIGSTOP)
        time.sleep(choice.uniform(0.1, 0.6))
        server.signal(signal.SIGCONT)

    def kill_worker() -> None:
        choice.choice(servers).signal_worker(signal.SIGKILL, choice)

    faults = [kill_server, pause_server, *([kill_worker] * 4 if plan.workers > 1 else [])]
    return faults + (_member_faults(etcd, choice) if etcd is not None else [])


def _member_faults(etcd: EtcdCluster, choice: random.Random) -> list[Callable[[], None]]:
    """What happens to etcd's members, one at a time."""

    def kill_member() -> None:
        member = choice.choice(etcd.members)
        member.kill()
        time.sleep(choice.uniform(0.0, 1.0))
        member.start()
        member.wait_ready()

    def pause_member() -> None:
        member = choice.choice(etcd.members)
        member.pause()
        time.sleep(choice.uniform(0.1, 2.0))
        member.resume()
        member.wait_ready()

    def cut_member_off() -> None:
        member = choice.choice(etcd.members)
        with suppress(OSError):
            etcd.cut_off(member)
            time.sleep(choice.uniform(0.1, 2.0))
        etcd.join_again()
        member.wait_ready()

    def move_leader() -> None:
        with suppress(OSError):
            etcd.move_leader()

    return [kill_member, pause_member, *([cut_member_off, move_leader] if len(etcd.members) > 1 else [])]


def await_sight(watchers: list[Watching], newest: int) -> None:
    """Let every watch see the last write that was acknowledged: so the log is complete."""
    deadline = time.monotonic() + _READY_SECONDS
    while any(watcher.at < newest and watcher.is_alive() for watcher in watchers):
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def begin(server: Address, tls: ssl.SSLContext) -> int:
    """Make the namespace; the version from which on everything is watched."""
    client = Caller([server], tls, 0)
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
    needed = (pki.admin_cert, pki.admin_key, pki.ca_cert)  # each is whole once it is there
    while not all(path.exists() for path in needed):
        if time.monotonic() > deadline:
            raise RuntimeError("the server made no certificates")
        time.sleep(0.05)
    context = ssl.create_default_context(cafile=str(pki.ca_cert))
    context.load_cert_chain(pki.admin_cert, pki.admin_key)
    return context
