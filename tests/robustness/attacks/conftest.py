"""A server under attack, and what the attack does to it and to others.

Every test attacks with what once froze the server or filled its memory, and ``attacked`` holds the server to the rule:
no turn of the event loop above the limit, no more memory than the allowance, and a second client that is served all
the while and hardly waits longer than when all is quiet. Holds are measured by the server itself, waits by the
processor time that the server spends while somebody waits: so a busy machine makes no difference to either. A slow
one does: limits of holds and waits are stretched by how many times longer the same work takes there. Waits at times in
which the server itself was not given a processor do not count.
``ATTACK_FIGURES=path`` appends a line with the figures of every attack to a file.
"""

from __future__ import annotations

import os
import re
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import IO, Any

import orjson
import pytest

from pilothouse.credentials.pki import Pki

MEGABYTE = 1024 * 1024
HOLD_SECONDS = 0.02
"""Turns below twice that: the meter's buckets, which double, and the first use of a part need the room."""
WAIT_SECONDS = 0.005
"""What others may wait for in any case: the handshakes of one or two connections, such as the attack's own."""
NEIGHBOURS = 4
"""How many visits before and after one tell with it how slow the processor was: a single look may meet an interrupt."""
ENOUGH_WAITS = 30
"""An attack that is over sooner says nothing about what is usual."""
MANY_WAITS = 100
"""An attack that is over sooner says nothing about one wait in a hundred, but for the longest of all."""
LONG_WAIT_SECONDS = 0.035
"""What one wait in a hundred may take: calls into C keep the interpreter's lock for milliseconds, one after another."""
LONGEST_WAIT_SECONDS = 0.07
HELD_UP_SECONDS = 0.01
"""When the server had no processor for longer, what piled up before it meanwhile says nothing about the server."""
QUIET_VISITS = 150
PATIENCE_SECONDS = 120.0
SECOND_CLIENT = str(Path(__file__).parent / "second_client.py")
_BUCKET = re.compile(r'^pilothouse_event_loop_hold_seconds_bucket\{le="([^"]+)"\} (\d+)$', re.MULTILINE)


@dataclass
class Answer:
    """What came back. Without a status, the server hung up or took too long."""

    status: int
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Visit:
    """What the second client saw of one request."""

    waited: float
    worked: float
    """What the server spent of its processors meanwhile: on the second client, and on others before it."""
    slowness: float
    """How many times as long as usual the same work took right after it."""
    held_up: float
    """How long the server had no processor since the visit before."""


@dataclass
class Figures:
    """What one attack did."""

    seconds: float = 0.0
    held: float = 0.0
    """At least one turn of the loop took this long."""
    grown: int = 0
    """By how many bytes the process was larger at its largest."""
    visits: list[Visit] = field(default_factory=list)

    @property
    def spent(self) -> list[float]:
        """What visits would have waited for on usual processors, but for those beside which the server was held up."""
        each = enumerate(self.visits)
        return [visit.worked / self._slowness(number) for number, visit in each if visit.held_up <= HELD_UP_SECONDS]

    @property
    def usual(self) -> float:
        return statistics.median(self.spent or [0.0])

    @property
    def slowness(self) -> float:
        """How many times as long as usual work takes on this machine, at this hour; never less than one."""
        return max(1.0, statistics.median([visit.slowness for visit in self.visits] or [1.0]))

    def _slowness(self, number: int) -> float:
        around = self.visits[max(0, number - NEIGHBOURS) : number + NEIGHBOURS + 1]
        return max(1.0, statistics.median(visit.slowness for visit in around))


def p99(values: list[float]) -> float:
    """What one in a hundred exceeds."""
    return sorted(values)[int(len(values) * 0.99)] if values else 0.0


class SecondClient:
    """Somebody else whom the server has to serve; ``second_client.py`` says how."""

    def __init__(self, running: Any) -> None:
        where = [str(running.port), str(running.data / "pki"), str(running.process.pid)]
        command = [sys.executable, SECOND_CLIENT, *where]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._tell, self._told = self._process.stdin, self._process.stdout

    @contextmanager
    def visiting(self, figures: Figures) -> Iterator[None]:
        """It is served meanwhile; what it saw is in the figures, each visit as soon as it is over."""
        self._tell.write("begin\n")
        assert self._told.readline() == "connected\n"
        reader = threading.Thread(target=_read_visits, args=(self._told, figures))
        reader.start()
        try:
            yield
        finally:
            self._tell.write("end\n")
            reader.join()

    def close(self) -> None:
        with self._process as process, suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.close()


class Victim:
    """The attacked server."""

    def __init__(self, running: Any, second: SecondClient) -> None:
        self.server = running
        self.port: int = running.port
        self._second = second
        self._pki = Pki(running.data / "pki")
        self.contexts = {anonymous: self.tls(anonymous=anonymous) for anonymous in (False, True)}
        """For whoever changes nothing in them: making one takes as long as a handshake."""
        self._quiet: float | None = None

    def tls(self, *, anonymous: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._pki.ca_cert))
        if not anonymous:
            context.load_cert_chain(self._pki.admin_cert, self._pki.admin_key)
        return context

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        *,
        user: str = "",
        anonymous: bool = False,
        accept: str = "application/json",
        timeout: float = 120.0,
    ) -> Answer:
        """One request on a connection of its own; as a ``user`` without any role, if one is named."""
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.contexts[anonymous])
        data = orjson.dumps(body) if isinstance(body, dict | list) else body
        headers = {"Accept": accept, **({"Content-Type": kind} if data is not None else {})}
        if user:
            headers["Impersonate-User"] = user
        started = time.monotonic()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            status, told = answer.status, answer.read()
        except (OSError, HTTPException):
            status, told = 0, b""
        finally:
            connection.close()
        return Answer(status, told, time.monotonic() - started)

    def establish(self, definition: dict[str, Any]) -> None:
        self.server.establish(definition)

    @contextmanager
    def attacked(
        self,
        what: str,
        *,
        allowance: int = 64 * MEGABYTE,
        hold: float = HOLD_SECONDS,
        longest_wait: float = LONGEST_WAIT_SECONDS,
    ) -> Iterator[Figures]:
        """Run an attack inside; afterwards the server must have kept the rule."""
        figures, quiet = Figures(), self.quiet_wait()
        before, start = self._holds(), self._memory("VmRSS")
        self._reset_peak()
        with self._second.visiting(figures):
            started = time.monotonic()
            try:
                yield figures
            finally:
                figures.seconds = time.monotonic() - started
        figures.grown = max(0, self._memory("VmHWM") - start)
        figures.held = max((low for low, new in self._new_holds(before) if new), default=0.0)
        assert figures.visits, f"{what}: nobody else was served"
        _write(what, figures, allowance)
        spent, slowness = figures.spent, figures.slowness
        usual, longest = figures.usual, p99(spent)
        held = f"{what}: one turn of the loop took more than {figures.held * 1000:.0f} ms"
        held += f" on a machine {slowness:.1f} times as slow as usual"
        assert figures.held < 2 * hold * slowness, held
        assert figures.grown <= allowance, f"{what}: the process grew by {figures.grown // MEGABYTE} MB"
        shown = f"{what}: others waited for {usual * 1000:.1f} to {longest * 1000:.1f} ms of work on a usual machine"
        shown += f", {quiet * 1000:.1f} ms in quiet; this one is {slowness:.1f} times as slow"
        if len(spent) >= ENOUGH_WAITS:
            assert usual <= max(5 * quiet, WAIT_SECONDS), shown
        bound = longest_wait if len(spent) < MANY_WAITS else min(longest_wait, LONG_WAIT_SECONDS)
        assert longest <= max(5 * quiet, bound), shown

    def quiet_wait(self) -> float:
        """The 99th percentile of what others wait for when nobody attacks, on a usual machine, measured once."""
        if self._quiet is None:
            figures = Figures()
            with self._second.visiting(figures):
                deadline = time.monotonic() + PATIENCE_SECONDS
                while len(figures.visits) < QUIET_VISITS:
                    assert time.monotonic() < deadline, "nobody was served, though all was quiet"
                    time.sleep(0.01)
            self._quiet = p99(figures.spent)
            _write("quiet", figures)
        return self._quiet

    def _holds(self) -> list[tuple[float, int]]:
        page = self.server.call("GET", "/metrics")[2].decode()
        return [(float(bound), int(count)) for bound, count in _BUCKET.findall(page)]

    def _new_holds(self, before: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """The lower bound of each bucket, and how many holds fell into it since."""
        lower, seen = 0.0, 0
        found: list[tuple[float, int]] = []
        for (bound, count), (_, earlier) in zip(self._holds(), before, strict=True):
            found.append((lower, count - earlier - seen))
            lower, seen = bound, count - earlier
        return found

    def _memory(self, which: str) -> int:
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        found = re.search(rf"^{which}:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    def _reset_peak(self) -> None:
        with suppress(OSError):
            Path(f"/proc/{self.server.process.pid}/clear_refs").write_text("5")


def _read_visits(told: IO[str], figures: Figures) -> None:
    for line in iter(told.readline, "over\n"):
        figures.visits.append(Visit(*map(float, line.split())))


def _write(what: str, figures: Figures, allowance: int = 0) -> None:
    if path := os.environ.get("ATTACK_FIGURES"):
        spent, waits = figures.spent, [visit.waited for visit in figures.visits]
        line = (
            f"{what}\t{figures.seconds:.2f} s\theld {figures.held * 1000:.0f} ms"
            f"\t{figures.grown // MEGABYTE} of {allowance // MEGABYTE} MB"
            f"\tothers p99 {p99(waits) * 1000:.1f} ms, longest {max(waits) * 1000:.0f} ms"
            f"\twork before others {figures.usual * 1000:.1f} ms, p99 {p99(spent) * 1000:.1f} ms of {len(spent)}"
            f"\t{figures.slowness:.2f} times as slow"
        )
        with Path(path).open("a") as file:
            file.write(line + "\n")


@contextmanager
def _attackable(running: Any) -> Iterator[Victim]:
    """A server with its second client, that has imported what writes need: growth is the attack's."""
    with closing(SecondClient(running)) as second:
        attacked = Victim(running, second)
        path, small = "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}
        assert attacked.call("POST", path, {**small, "metadata": {"name": "first"}}).status == 201
        assert attacked.call("DELETE", f"{path}/first").status == 200
        yield attacked


@pytest.fixture(scope="module")
def launch_victim(
    launch_for_module: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Victim]]:
    """Starts servers to attack, for the tests of a module."""
    with ExitStack() as started:

        def start(*flags: str) -> Victim:
            running = launch_for_module(tmp_path_factory.mktemp("victim") / "data", *flags)
            return started.enter_context(_attackable(running))

        yield start


@pytest.fixture(scope="module")
def victim(launch_victim: Callable[..., Victim]) -> Victim:
    """A server without anything from other tests."""
    return launch_victim()


@pytest.fixture
def fresh(launch: Callable[..., Any], tmp_path: Path) -> Iterator[Victim]:
    """A server for one test alone: what others made it grow by, an attack would find already there."""
    with _attackable(launch(tmp_path / "data")) as attacked:
        yield attacked


@pytest.fixture(scope="module")
def crowd(victim: Victim) -> Callable[[str, int], None]:
    """Fills a namespace with config maps."""

    def fill(namespace: str, count: int) -> None:
        victim.server.namespace(namespace)
        connection = HTTPSConnection("127.0.0.1", victim.port, timeout=120, context=victim.contexts[False])
        for number in range(count):
            metadata = {"name": f"m{number}", "labels": {"app": f"a{number % 10}", "number": str(number)}}
            body = orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201
        connection.close()

    return fill
