"""Says the same random things to Pilothouse and to kube-apiserver, and prints the shortest conversations that differ.

    python tools/differential.py --kube-apiserver path --etcd path [--exchanges 2000] [--seed 1] [--area numbers]

Both start empty, with one token and all rights. A conversation is a handful of requests on objects of its own names;
answers are compared without what must differ (versions, times, uids). Several are held at once, one area after the
other. A difference is made smaller by leaving requests out as long as it stays, and is printed once for each kind: the
request's shape and the two statuses and messages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import differential_versions as versions
from differential_answers import TOKEN, Answer, Peer, Request
from differential_areas import AREAS, DEFINITIONS, MERGE, Maker, Names
from differential_servers import plain_kube_apiserver
from launching import free_port, running_server

AT_ONCE = 6
_TOLD = 10_000
"""After how many exchanges it says that it goes on."""
_NAMES = count()


class Findings:
    """The kinds of differences that were printed already, and how much was said."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self.exchanges = 0
        self.hung_up = 0
        """How often kube-apiserver closed the connection instead of answering: it has panicked."""

    def note(self, kind: str) -> bool:
        """Whether a kind of difference is new."""
        with self._lock:
            new = kind not in self._known
            self._known.add(kind)
            return new

    def count(self) -> None:
        with self._lock:
            self.exchanges += 1
            if not self.exchanges % _TOLD:
                print(f"{self.exchanges} exchanges, {self.differences} kinds of differences", file=sys.stderr)

    @property
    def differences(self) -> int:
        return len(self._known)


class Comparison:
    """Two servers, asked on one connection each about things in one namespace."""

    def __init__(self, ports: tuple[int, int], namespace: str, findings: Findings) -> None:
        self._ours, self._theirs = (Peer(port) for port in ports)
        self._namespace = namespace
        self._findings = findings

    def converse(self, maker: Maker, choice: random.Random) -> None:
        """Hold one conversation; print the smallest part of it that shows a new kind of difference."""
        state = choice.getstate()

        def make() -> list[Request]:
            """The same conversation under another name."""
            choice.setstate(state)
            return maker(choice, Names(self._namespace, f"t{next(_NAMES)}"))

        requests = make()
        found = self._differing(requests)
        if found is not None and self._findings.note(kind := _kind(*found)):
            self._show(*self._smallest(make, requests, found, kind))

    def _smallest(
        self, make: Callable[[], list[Request]], requests: list[Request], found: _Difference, kind: str
    ) -> tuple[list[Request], _Difference]:
        kept = list(range(requests.index(found[0]) + 1))
        for leaving in kept[:-1]:
            fewer = [position for position in kept if position != leaving]
            again = make()
            smaller = self._differing([again[position] for position in fewer])
            if smaller is not None and _kind(*smaller) == kind:
                kept, found, requests = fewer, smaller, again
        return [requests[position] for position in kept], found

    def _show(self, requests: list[Request], found: _Difference) -> None:
        said = "".join(f"  {request}\n" for request in requests)
        print(f"{said}  ours:   {found[1].show(found[2])}\n  theirs: {found[2].show(found[1])}\n", flush=True)

    def _differing(self, requests: list[Request]) -> _Difference | None:
        first: _Difference | None = None
        for request in requests:  # to the end, so that both are left in the same state
            ours, theirs = self._ours.say(request), self._theirs.say(request)
            self._findings.count()
            if not theirs.status:
                self._findings.hung_up += 1
            elif ours != theirs and first is None:
                first = request, ours, theirs
        return first


_Difference = tuple[Request, Answer, Answer]


def _kind(request: Request, ours: Answer, theirs: Answer) -> str:
    """What makes two differences the same: the request's shape, the statuses, and the words without values."""
    mine, yours = (f"{answer.body}{answer.warnings}" for answer in (ours, theirs))
    at = next((at for at, (a, b) in enumerate(zip(mine, yours, strict=False)) if a != b), 0)
    words = [re.sub(r'"[^"]*"|\d+', "_", text[max(0, at - 40) : at + 60]) for text in (mine, yours)]
    path = re.sub(r"\b[a-z]+\d+\b", "t", request.path.partition("?")[0])
    return f"{request.method} {path} {ours.status} {theirs.status} {ours.kind} {theirs.kind} {words}"


def main() -> int:
    """Compare until so many requests were exchanged in each area; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--exchanges", type=int, default=2000, help="in each area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", choices=sorted(AREAS), action="append", help="only these")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pilothouse-differential-") as name, ExitStack() as undoing:
        folder = Path(name)
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        theirs = undoing.enter_context(plain_kube_apiserver(flags.kube_apiserver, flags.etcd, folder, tokens))
        port = free_port()
        own = [f"--data-dir={folder / 'data'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        own += [
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://x",
        ]
        undoing.enter_context(running_server(own, port, TOKEN, folder / "own.log"))
        ports = port, theirs
        for each in ports:
            _prepare(Peer(each))
        found = [_compare(area, ports, flags.seed, flags.exchanges) for area in flags.area or AREAS]
        return 1 if any(found) else 0


def _compare(area: str, ports: tuple[int, int], seed: int, exchanges: int) -> int:
    """How many kinds of differences an area shows."""
    findings = Findings()
    for port in ports:
        for number in range(AT_ONCE):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{area}{number}"}}
            Peer(port).say(Request("POST", "/api/v1/namespaces", json.dumps(body).encode()))

    def work(number: int) -> None:
        choice = random.Random(f"{seed} {area} {number}")
        comparison = Comparison(ports, f"{area}{number}", findings)
        while findings.exchanges < exchanges:
            comparison.converse(AREAS[area], choice)
            choice.random()

    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(work, range(AT_ONCE)))
    shown = (
        f"{findings.exchanges} exchanges, {findings.differences} kinds of differences, hung up {findings.hung_up} times"
    )
    print(f"{area}: {shown}, {time.monotonic() - started:.0f} s", flush=True)
    return findings.differences


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
