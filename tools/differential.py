"""Says the same random things to Pilothouse and to kube-apiserver, and prints the shortest conversations that differ.

    python tools/differential.py --kube-apiserver path --etcd path [--exchanges 2000] [--seed 1] [--area numbers]

Both start empty, with one token and all rights, and keep their data in memory where they can. A conversation is a
handful of requests on objects of its own names; answers are compared without what must differ (versions, times, uids).
Many are held at once, of the area that is furthest behind; both servers work on a request at the same time. A
difference is made smaller by leaving requests out as long as it stays, and is printed once for each kind: the request's
shape and the two statuses and messages. One that does not come again is a matter of time or chance, and stays as it is.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import differential_conversions as conversions
import differential_versions as versions
import golden as recordings
from differential_answers import TOKEN, Answer, Peer, Request, ask_both
from differential_areas import AREAS, DEFINITIONS, MERGE, Maker, Names
from differential_conversions import Converter
from differential_servers import plain_kube_apiserver
from differential_webhooks import serving
from launching import free_port, running_server

_LANES = 6
"""Conversations of one area at once."""
_AT_ONCE = 12
"""Conversations of all areas at once."""
_TOLD_SECONDS = 60.0
_TRIES = 6
"""How often a difference must come again: what kube-apiserver does in the order of a Go map is nobody's difference."""
_MEMORY = Path("/dev/shm")
_NAMES = count()


class Area:
    """The conversations about one thing: those to come, and what the others showed."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.maker: Maker = AREAS[name]
        self.choices = [random.Random(f"{seed} {name} {lane}") for lane in range(_LANES)]
        self.free = list(range(_LANES))
        self.exchanges = 0
        self.hung_up = 0
        """How often kube-apiserver closed the connection instead of answering: it has panicked."""
        self.known: set[str] = set()
        """The kinds of differences that were printed already."""
        self.once: set[str] = set()
        """Those that did not come again."""

    def __str__(self) -> str:
        kinds = f"{len(self.known)} kinds of differences, {len(self.once)} that did not come again"
        return f"{self.name}: {self.exchanges} exchanges, {kinds}, hung up {self.hung_up} times"


class Turns:
    """Gives each worker the next conversation: of the area that is furthest behind and has a free lane."""

    def __init__(self, areas: Sequence[Area], exchanges: int, until: float) -> None:
        self._areas, self._exchanges, self._until = areas, exchanges, until
        self._lock = threading.Condition()

    def end(self) -> None:
        """Nothing new is begun."""
        self._until = 0.0

    @contextmanager
    def next(self) -> Iterator[tuple[Area, int] | None]:
        """An area and one of its lanes; nothing when all is said."""
        with self._lock:
            while (area := self._furthest_behind()) is None and self._left():
                self._lock.wait(1)
            lane = area.free.pop(0) if area is not None else 0
        try:
            yield None if area is None else (area, lane)
        finally:
            if area is not None:
                with self._lock:
                    area.free.append(lane)
                    self._lock.notify()

    def _left(self) -> list[Area]:
        return [each for each in self._areas if each.exchanges < self._exchanges and time.monotonic() < self._until]

    def _furthest_behind(self) -> Area | None:
        return min((each for each in self._left() if each.free), key=lambda each: each.exchanges, default=None)


class Finding(NamedTuple):
    """The request that was answered differently, and how."""

    request: Request
    ours: Answer
    theirs: Answer

    @property
    def kind(self) -> str:
        """What makes two differences the same: the request's shape, the statuses, and the words without values."""
        mine, yours = (f"{answer.body}{answer.warnings}{answer.headers}" for answer in self[1:])
        at = next((at for at, (a, b) in enumerate(zip(mine, yours, strict=False)) if a != b), 0)
        words = [re.sub(r'"[^"]*"|\d+', "_", text[max(0, at - 40) : at + 60]) for text in (mine, yours)]
        path = re.sub(r"\b[a-z]+\d+\b", "t", self.request.path.partition("?")[0])
        kinds = f"{self.ours.status} {self.theirs.status} {self.ours.kind} {self.theirs.kind}"
        return f"{self.request.method} {path} {kinds} {words}"


class Comparison:
    """Two servers, asked on one connection each."""

    def __init__(self, ports: tuple[int, int]) -> None:
        self._ours, self._theirs = (Peer(port) for port in ports)

    def converse(self, area: Area, lane: int) -> None:
        """Hold one conversation; print the smallest part of it that shows a new kind of difference."""
        choice = area.choices[lane]
        state = choice.getstate()

        def make() -> list[Request]:
            """The same conversation under another name."""
            choice.setstate(state)
            return area.maker(choice, Names(f"{area.name}{lane}", f"t{next(_NAMES)}"))

        requests = make()
        found = self._differing(area, requests)
        if found is None or (kind := found.kind) in area.known | area.once:
            return
        area.known.add(kind)
        if all(self._again(area, make(), kind) for _ in range(_TRIES)):
            _show(area.name, *self._smallest(area, make, requests, found))
        else:
            area.known.discard(kind)
            area.once.add(kind)
            ours, theirs = found.ours.show(found.theirs), found.theirs.show(found.ours)
            print(f"once, {area.name}: {found.request}\n  ours:   {ours}\n  theirs: {theirs}\n", flush=True)

    def _again(self, area: Area, requests: list[Request], kind: str) -> bool:
        found = self._differing(area, requests)
        return found is not None and found.kind == kind

    def _smallest(
        self, area: Area, make: Callable[[], list[Request]], requests: list[Request], found: Finding
    ) -> tuple[list[Request], Finding]:
        kept = list(range(requests.index(found.request) + 1))
        for leaving in [position for position in kept[:-1] if not requests[position].awaits]:
            fewer = [position for position in kept if position != leaving]
            again = make()
            smaller = self._differing(area, [again[position] for position in fewer])
            if smaller is not None and smaller.kind == found.kind:
                kept, found, requests = fewer, smaller, again
        return [requests[position] for position in kept], found

    def _differing(self, area: Area, requests: list[Request]) -> Finding | None:
        first: Finding | None = None
        comparable = True
        self._ours.forget()
        self._theirs.forget()
        for request in requests:  # to the end, so that both are left in the same state
            ours, theirs = ask_both(self._ours, self._theirs, request)
            area.exchanges += 1
            if not theirs.status:
                area.hung_up += 1
                comparable = False  # it has done nothing of it
            elif ours != theirs and first is None and comparable:
                first = Finding(request, ours, theirs)
        return first


def _show(area: str, requests: list[Request], found: Finding) -> None:
    said = "".join(f"  {request}\n" for request in requests)
    ours, theirs = found.ours.show(found.theirs), found.theirs.show(found.ours)
    print(f"{area}:\n{said}  ours:   {ours}\n  theirs: {theirs}\n", flush=True)


def main() -> int:
    """Compare until so many requests were exchanged in each area; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--exchanges", type=int, default=2000, help="in each area")
    parser.add_argument("--seconds", type=float, default=1e9, help="end by then, whatever was reached")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", choices=sorted(AREAS), action="append", help="only these")
    parser.add_argument("--at-once", type=int, default=_AT_ONCE, help="conversations")
    parser.add_argument("--flag", action="append", default=[], help="of both servers, as --flag=--feature-gates=X=true")
    flags = parser.parse_args()
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="pilothouse-differential-", dir=memory) as name, ExitStack() as undoing:
        folder = Path(name)
        tokens = folder / "rights.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        theirs = undoing.enter_context(
            plain_kube_apiserver(flags.kube_apiserver, flags.etcd, folder, tokens, flags.flag)
        )
        port = free_port()
        own = [f"--data-dir={folder / 'data'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        own += [
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://x",
            *flags.flag,
        ]
        undoing.enter_context(running_server(own, port, TOKEN, folder / "own.log"))
        areas = [Area(each, flags.seed) for each in flags.area or AREAS]
        recordings.write_files(folder)
        webhook = undoing.enter_context(serving(Converter, folder))
        authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
        for each in (port, theirs):
            _prepare(Peer(each))
            _define(Peer(each), conversions.definition(webhook, authority), conversions.STORED)
            _make_namespaces(Peer(each), areas)
        turns = Turns(areas, flags.exchanges, time.monotonic() + flags.seconds)
        for end in (signal.SIGINT, signal.SIGTERM):
            signal.signal(end, lambda *_: turns.end())
        _compare(areas, (port, theirs), turns, flags.at_once)
        return 1 if any(area.known for area in areas) else 0


def _compare(areas: Sequence[Area], ports: tuple[int, int], turns: Turns, at_once: int) -> None:
    """Hold conversations until all is said, and tell what came of it."""
    started = time.monotonic()
    done = threading.Event()

    def work(_: int) -> None:
        comparison = Comparison(ports)
        while True:
            with turns.next() as turn:
                if turn is None:
                    return
                comparison.converse(*turn)

    def tell() -> None:
        while not done.wait(_TOLD_SECONDS):
            exchanges = sum(area.exchanges for area in areas)
            rate = exchanges / (time.monotonic() - started)
            kinds = sum(len(area.known) for area in areas)
            print(f"{exchanges} exchanges, {rate:.0f} a second, {kinds} kinds of differences", file=sys.stderr)

    threading.Thread(target=tell, daemon=True).start()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(work, range(at_once)))
    done.set()
    exchanges, seconds = sum(area.exchanges for area in areas), time.monotonic() - started
    print("\n".join(map(str, areas)))
    print(f"{exchanges} exchanges in {seconds:.0f} s, {exchanges / seconds:.0f} a second", flush=True)


def _make_namespaces(peer: Peer, areas: Sequence[Area]) -> None:
    for area in areas:
        for lane in range(_LANES):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{area.name}{lane}"}}
            peer.say(Request("POST", "/api/v1/namespaces", json.dumps(body).encode()))


_TYPED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "pattern": "^[ab]*$", "maxLength": 10},
                "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
                "float": {"type": "number", "multipleOf": 0.5},
                "when": {"type": "string", "format": "date-time"},
                "choice": {"type": "string", "enum": ["a", "b"]},
                "any": {"x-kubernetes-int-or-string": True},
                "nothing": {"type": "string", "nullable": True},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "list": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object",
                        "required": ["k"],
                        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                    },
                },
            },
            "x-kubernetes-validations": [{"rule": "!has(self.count) || self.count != 7", "message": "not seven"}],
        }
    },
}


def _prepare(peer: Peer) -> None:
    """What conversations find: three definitions."""
    _define(peer, versions.DEFINITION, "v1")
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind, schema in (("Thing", free), ("Typed", _TYPED)):
        group, plural = "differ.example" if kind == "Thing" else "typed.example", f"{kind.lower()}s"
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [version]}
        _define(peer, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}, "v1")
        # Managers are ordered by the seconds of their writes, which differ: without them all forms can be compared.
        reset = b'{"metadata":{"managedFields":[{}]}}'
        peer.say(Request("PATCH", f"{DEFINITIONS}/{plural}.{group}", reset, MERGE))


def _define(peer: Peer, definition: dict[str, Any], version: str) -> None:
    """Make a definition and wait until it is served."""
    body = json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition})
    peer.say(Request("POST", DEFINITIONS, body.encode()))
    plural, _, group = definition["metadata"]["name"].partition(".")
    while peer.say(Request("GET", f"/apis/{group}/{version}/{plural}")).status != 200:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
