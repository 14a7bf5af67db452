"""Changes recorded conversations at random, holds them with Pilothouse and kube-apiserver, and prints what differs.

    python tools/differential_recordings.py --kube-apiserver path --etcd path [--exchanges 20000] [--seed 1] [--area a]

Both run with the flags of the recordings (``tools/golden.py``), so that a conversation is as it was recorded but for
what ``differential_mutations`` did to it. Each is held with both at the same time, one conversation after the other,
and what it leaves behind for all namespaces is taken away again. A step that kube-apiserver answers differently when it
is asked once more is nobody's difference. What differs is printed once for each kind, with as few steps as show it.
Policies and webhooks of one conversation may reach into another: their area is for one lane.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import golden as recordings
from differential_answers import normal
from differential_mutations import Mutations, Step
from differential_servers import kube_apiserver
from launching import free_port, running_server

_TOKEN = "admintoken"
_LONGEST_WAIT = 4.0
_TIMEOUT = 10
_TOLD = 5_000
_NAMES = count()
_UNIQUE = re.compile(r"u[0-9a-f]{8}")
_AGAIN = 8
"""How often kube-apiserver is asked again about a difference."""
_LEFT_BEHIND = (
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    "storage.k8s.io/v1/storageclasses",
    "networking.k8s.io/v1/ingressclasses",
    "networking.k8s.io/v1/servicecidrs",
    "node.k8s.io/v1/runtimeclasses",
    "resource.k8s.io/v1/deviceclasses",
    "storage.k8s.io/v1/csidrivers",
    "storage.k8s.io/v1/csinodes",
    "storage.k8s.io/v1/volumeattachments",
    "storage.k8s.io/v1/volumeattributesclasses",
    "certificates.k8s.io/v1/certificatesigningrequests",
    "flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "scheduling.k8s.io/v1/priorityclasses",
    "apiextensions.k8s.io/v1/customresourcedefinitions",
    "apiregistration.k8s.io/v1/apiservices",
    "rbac.authorization.k8s.io/v1/clusterroles",
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
)
"""What one conversation would leave to the next, as far as it is told from what servers make themselves."""


def _replay_module() -> Any:
    """The program that replays recordings; it has the name of the tool that starts it."""
    spec = importlib.util.spec_from_file_location("recorded", recordings.REPLAY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_REPLAY = _replay_module()


class Difference(NamedTuple):
    """The step that was answered differently, and by what."""

    position: int
    paths: tuple[str, ...]

    def kind(self, step: Step) -> str:
        """What makes two differences the same."""
        shape = re.sub(r"/[^/?]*[A-Z$0-9-][^/?]*", "/_", step.get("path", "").partition("?")[0])
        said = "|".join(re.sub(r'"[^"]*"|\d+', "_", path)[:160] for path in self.paths[:2])
        return f"{step.get('method')} {shape} {said}"


class Side:
    """One of the two servers."""

    def __init__(self, port: int) -> None:
        self.server = _REPLAY.Server(f"https://127.0.0.1:{port}")
        connect = self.server.connect
        self.server.connect = lambda timeout=_TIMEOUT: connect(_TIMEOUT)
        send = self.server.send

        def sent(*words: Any) -> Any:
            status, headers, data = send(*words)
            if data.startswith(b"k8s\0"):  # compared by what it says, and under a type that says it is text
                data = b"protobuf " + normal(data).replace(str(port), "<server-port>").encode()
                headers = [
                    (k, v if k.lower() != "content-type" else f"text/{v}".replace("protobuf", "proto"))
                    for k, v in headers
                ]
            return status, headers, data

        self.server.send = sent
        self._known: dict[str, set[str]] = {}
        for resource in _LEFT_BEHIND:
            self._known[resource] = set(self._names(resource))

    def hold(self, scenario: dict[str, Any], steps: list[Step], unique: str) -> list[Any]:
        """The answers to a conversation, without what must differ."""
        run = _REPLAY.Run(self.server, {**scenario, "steps": steps})
        run.env.update(uniq=unique, ns=f"g-{unique}")
        return [answer for _, _, answer in run.steps()]

    def tidy(self, steps: list[Step], unique: str) -> None:
        """Take away what a conversation made for all namespaces, and its own."""
        self._ask("DELETE", f"/api/v1/namespaces/g-{unique}")
        said = " ".join(step.get("path", "") for step in steps)
        for resource in _LEFT_BEHIND:
            if resource.rpartition("/")[2] not in said:
                continue
            for name in set(self._names(resource)) - self._known[resource]:
                if unique not in name and _UNIQUE.search(name):
                    continue  # of another conversation
                path = f"/apis/{resource}/{name}"
                self._ask("PATCH", path, b'{"metadata":{"finalizers":null}}')
                self._ask("DELETE", path)

    def _names(self, resource: str) -> Iterator[str]:
        _, _, data = self._ask("GET", f"/apis/{resource}")
        try:
            for item in json.loads(data).get("items") or ():
                yield item["metadata"]["name"]
        except ValueError:
            return

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": f"Bearer {_TOKEN}", "Accept": "application/json"}
        headers |= {} if body is None else {"Content-Type": "application/merge-patch+json"}
        try:
            return self.server.send(method, path, headers, body, True)
        except OSError:
            return 0, [], b""


class Comparison:
    """Both servers, and what was found so far."""

    def __init__(self, ports: tuple[int, int], lanes: int) -> None:
        self._sides = tuple(Side(port) for port in ports)
        self._threads = ThreadPoolExecutor(2 * lanes)
        self._known: set[str] = set()
        self.exchanges = 0

    @property
    def differences(self) -> int:
        return len(self._known)

    def converse(self, name: str, scenario: dict[str, Any], steps: list[Step]) -> None:
        """Hold one conversation; print the smallest part of it that shows a new kind of difference."""
        found = [
            each for each in self._differing(scenario, steps) if each.kind(steps[each.position]) not in self._known
        ]
        for difference in found[:3]:
            kind = difference.kind(steps[difference.position])
            if kind in self._known:
                continue
            self._known.add(kind)
            fewer = self._smallest(scenario, steps, difference)
            if fewer is None:
                print(f"not again: {kind[:300]}", file=sys.stderr, flush=True)
            else:
                _show(name, fewer, difference)

    def _smallest(self, scenario: dict[str, Any], steps: list[Step], difference: Difference) -> list[Step] | None:
        """As few steps as still show the difference; none where kube-apiserver does not agree with itself."""
        kept = steps[: difference.position + 1]
        if not self._shows(scenario, kept, difference, steadily=True):
            return None
        size = max(1, len(kept) // 2)
        while size:
            at = 0
            while at < len(kept) - 1:
                fewer = kept[:at] + kept[min(at + size, len(kept) - 1) :]
                if self._shows(scenario, fewer, difference):
                    kept = fewer
                else:
                    at += size
            size //= 2
        return kept

    def _shows(
        self, scenario: dict[str, Any], steps: list[Step], difference: Difference, *, steadily: bool = False
    ) -> bool:
        kind = difference.kind(steps[-1])
        for _ in range(_AGAIN if steadily else 1):
            found = [each for each in self._differing(scenario, steps) if each.position == len(steps) - 1]
            if not any(each.kind(steps[-1]) == kind for each in found):
                return False
        return True

    def _differing(self, scenario: dict[str, Any], steps: list[Step]) -> list[Difference]:
        unique = f"u{next(_NAMES):08x}"
        ours, theirs = self._threads.map(lambda side: side.hold(scenario, steps, unique), self._sides)
        list(self._threads.map(lambda side: side.tidy(steps, unique), self._sides))
        before = self.exchanges
        self.exchanges += len(ours)
        if before // _TOLD != self.exchanges // _TOLD:
            print(f"{self.exchanges} exchanges, {self.differences} kinds of differences", file=sys.stderr)
        positions = [at for at, step in enumerate(steps) if "sleep" not in step and not step.get("background")]
        found = []
        for position, mine, yours in zip(positions, ours, theirs, strict=True):
            heard = yours["status"] not in (0, 429)  # it has panicked, or is not ready
            paths = tuple(_differences(_settled(yours), _settled(mine))) if heard else ()
            if paths and not any(map(_UNIQUE.search, paths)):  # which would be of another conversation
                found.append(Difference(position, paths))
        return found


_MARKS = (
    (re.compile(r"\b10\.0\.\d+\.\d+\b"), "<ip>"),
    (re.compile(r"\b3[0-2]\d{3}\b"), "<port>"),
    (re.compile(r"\bselfType\d+"), "selfType"),
    (re.compile(r"eyJ2Ijoi[A-Za-z0-9_-]+"), "<continue>"),
    (re.compile(r'"managedFields":\[.*?\}\]\}(?=[,}])'), "managedFields"),
)


def _settled(answer: Any) -> Any:
    """An answer without what messages and other texts tell of this run alone."""
    if isinstance(answer, dict):
        return {key: _settled(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_settled(item) for item in answer]
    if isinstance(answer, str):
        for pattern, mark in _MARKS:
            answer = pattern.sub(mark, answer)
    return answer


def _differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ; of texts only from shortly before that on."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from _differences(theirs.get(key, "absent"), ours.get(key, "absent"), f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (yours, mine) in enumerate(zip(theirs, ours, strict=True)):
            yield from _differences(yours, mine, f"{path}[{number}]")
    elif theirs != ours or type(theirs) is not type(ours):
        texts = [json.dumps(value, ensure_ascii=False) for value in (ours, theirs)]
        pairs = zip(*texts, strict=False)
        at = max(0, next((at for at, (one, other) in enumerate(pairs) if one != other), min(map(len, texts))) - 60)
        yield f"{path}: ours …{texts[0][at : at + 300]}\n{' ' * len(path)}  theirs …{texts[1][at : at + 300]}"


def _show(name: str, steps: list[Step], difference: Difference) -> None:
    lines = [f"== {name}"]
    for step in steps:
        said = {key: value for key, value in step.items() if key not in ("expect", "id", "ignore", "without", "within")}
        lines.append(f"  {json.dumps(said, ensure_ascii=False)[:1500]}")
    lines += (f"    {path}" for path in difference.paths[:6])
    print("\n".join(lines), end="\n\n", flush=True)


def _bounded(step: Step) -> Step:
    """The step with shorter waits."""
    made = {key: value for key, value in step.items() if key != "expect"}
    if "sleep" in made:
        made["sleep"] = min(made["sleep"], 1)
    if "until" in made:
        made["within"] = min(made.get("within", _LONGEST_WAIT), _LONGEST_WAIT)
    return made


_SETTLING = (
    ("/apis/admissionregistration.k8s.io/", 1.3),
    ("/apis/apiregistration.k8s.io/", 1.0),
    ("/apis/apiextensions.k8s.io/", 0.4),
    ("/apis/rbac.authorization.k8s.io/", 0.2),
    ("/apis/scheduling.k8s.io/", 0.2),
    ("/apis/storage.k8s.io/", 0.2),
    ("/apis/node.k8s.io/", 0.2),
    ("/apis/networking.k8s.io/v1/ingressclasses", 0.2),
    ("/apis/networking.k8s.io/v1/servicecidrs", 0.4),
)
"""How long kube-apiserver may take until it acts by what was written there."""


def _patient(steps: list[Step]) -> list[Step]:
    """The steps with time for kube-apiserver to hear of what others depend on."""
    made: list[Step] = []
    due, written = 0.0, ""
    for step in steps:
        path = step.get("path", "")
        if due and not path.startswith(written):
            made.append({"sleep": due})
            due = 0.0
        made.append(step)
        for prefix, seconds in _SETTLING:
            if path.startswith(prefix) and step.get("method") not in ("GET", None) and "dryRun" not in path:
                due, written = seconds, prefix
        if path.endswith(("/limitranges", "/resourcequotas")) or path.startswith("/api/v1/namespaces/${ns}?"):
            due, written = 0.1, path
    return made


def main() -> int:
    """Compare until so many requests were exchanged; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--exchanges", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=1, help="conversations at once; more than one for those that wait")
    parser.add_argument("--area", action="append", help="only these")
    parser.add_argument("--only", default="", help="only recordings with this in their name")
    flags = parser.parse_args()
    files = sorted((recordings.REPLAY.parent / "scenarios").glob("*/*.json"))
    all_scenarios = {path: json.loads(path.read_text()) for path in files}
    chosen = [
        (f"{path.parent.name}/{path.stem}", scenario)
        for path, scenario in all_scenarios.items()
        if not scenario.get("needs") and (not flags.area or path.parent.name in flags.area) and flags.only in path.name
    ]
    mutations = Mutations(all_scenarios.values())
    with tempfile.TemporaryDirectory(prefix="pilothouse-differential-") as name, ExitStack() as undoing:
        folder = Path(name)
        recordings.write_files(folder)
        port, theirs = free_port(), free_port()
        common = recordings.flags(folder, port)
        others = [flag for flag in common if not flag.startswith(("--data-dir", "--secure-port"))]
        undoing.enter_context(kube_apiserver(flags.kube_apiserver, flags.etcd, folder, theirs, _TOKEN, others))
        undoing.enter_context(running_server(common, port, _TOKEN, folder / "own.log"))
        comparison = Comparison((port, theirs), flags.lanes)

        over = threading.Event()

        def work(lane: int) -> None:
            choice = random.Random(f"{flags.seed} {lane}")
            while comparison.exchanges < flags.exchanges and not over.is_set():
                title, scenario = choice.choice(chosen)
                steps = _patient([_bounded(step) for step in mutations.conversation(choice, scenario["steps"])])
                comparison.converse(title, scenario, steps)

        started = time.monotonic()
        with ThreadPoolExecutor(flags.lanes) as threads:
            try:
                list(threads.map(work, range(flags.lanes)))
            finally:
                over.set()  # interrupted: lanes end with the conversation they are in
        spent = time.monotonic() - started
        print(f"{comparison.exchanges} exchanges, {comparison.differences} kinds of differences, {spent:.0f} s")
        return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
