"""Says the same random things to Pilothouse and to kube-apiserver, and prints the shortest conversation they differ on.

    python tools/differential.py --kube-apiserver path --etcd path [--exchanges 2000] [--seed 1] [--area numbers]

Both start empty, with one token and all rights. A conversation is a handful of requests on objects of its own names;
answers are compared without what must differ (versions, times, uids). A difference is made smaller by leaving
requests out as long as it stays, and is printed once for each kind: the request's shape and the two statuses and
messages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

from launching import free_port, running_server

TOKEN = "differential"
READY_SECONDS = 60.0
JSON = "application/json"
_MOST_ASKED = 100


@dataclass(frozen=True)
class Request:
    """One thing to say."""

    method: str
    path: str
    body: bytes | None = None
    kind: str = JSON
    accept: str = JSON
    awaits: str = ""
    """Said again until the answer has this text, for what controllers do in their own time."""

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.kind} {self.body[:300].decode(errors='replace')}"
        return f"{self.method} {self.path} [{self.accept}]{body}"


@dataclass(frozen=True)
class Answer:
    """What came back, as far as it can be compared."""

    status: int
    kind: str
    body: str

    def show(self, other: Answer) -> str:
        """The answer, from shortly before it differs from another."""
        pairs = enumerate(zip(self.body, other.body, strict=False))
        differs = next((at for at, (mine, yours) in pairs if mine != yours), min(len(self.body), len(other.body)))
        begin = max(0, differs - 200)
        return f"{self.status} {self.kind} {'…' if begin else ''}{self.body[begin : differs + 300]}"


class Peer:
    """A server to talk to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: HTTPSConnection | None = None

    def say(self, request: Request) -> Answer:
        """Its answer; status 0 when it hung up."""
        for _ in range(_MOST_ASKED if request.awaits else 1):
            answer = self._say(request)
            if request.awaits in answer.body or answer.status == 404:
                break
            time.sleep(0.02)
        return answer

    def _say(self, request: Request) -> Answer:
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.kind
        for _ in range(2):
            if self._connection is None:
                context = ssl._create_unverified_context()
                self._connection = HTTPSConnection("127.0.0.1", self._port, timeout=30, context=context)
            try:
                self._connection.request(request.method, request.path, request.body, headers)
                answer = self._connection.getresponse()
                return Answer(answer.status, answer.getheader("Content-Type", ""), _normal(answer.read()))
            except (OSError, HTTPException):
                self._connection.close()
                self._connection = None
        return Answer(0, "", "")


_MOVING = re.compile(
    r'(\\*"|\b)(uid|resourceVersion|creationTimestamp|time|deletionTimestamp|continue)(\\*"|):( ?)\\*"[^"\\]*\\*"'
)
_UIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SUFFIX = re.compile(r"(\bt\d+-)[a-z0-9]{5}\b")


_QUOTED_MANAGERS = re.compile(r'managedFields\\+":\[.*?\}\]\}(?=[,}])|\\+"status\\+":\{\\+"conditions.*?(?=\\": )')
"""Of objects that messages quote: their order, and what controllers have done so far."""
_AGES = re.compile(r'"(?:\d+[dhms])+"|(?<="serverAddress":)"[^"]*"')
_PROTOBUF = b"k8s\0"
_NUMBERS_ALONE = re.compile(rb"[0-9]+")
_CONTINUE = re.compile(r"eyJ2Ijoi[A-Za-z0-9_-]+")


def _fields(data: bytes) -> Any:
    """A protobuf message as a list of numbers and values, without its versions and times; text where it is none."""
    found, at = [], 0
    if _NUMBERS_ALONE.fullmatch(data):
        return "*"
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            if not number or wire not in (0, 2):
                raise ValueError
            value, at = _varint(data, at)
            if wire == 2:
                if at + value > len(data):
                    raise ValueError
                found.append((number, _fields(data[at : at + value])))
                at += value
            else:
                found.append((number, "*" if 10**9 < value < 10**10 else value))  # a time
    except (ValueError, IndexError):
        return data.decode("utf-8", "backslashreplace")
    return found if found else ""


def _sorted_managers(value: Any) -> Any:
    """Managed fields are ordered by times, which differ; here by what else they say."""
    if isinstance(value, list):
        return [_sorted_managers(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _sorted_managers(item) for key, item in value.items()}
    if isinstance(managers := fields.get("managedFields"), list):
        managers.sort(key=lambda entry: json.dumps({**entry, "time": ""}) if isinstance(entry, dict) else "")
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def _normal(data: bytes) -> str:
    """The text without what differs between any two servers; JSON with its keys sorted."""
    if data.startswith(_PROTOBUF):
        data = json.dumps(_fields(data[len(_PROTOBUF) :])).encode()
    text = data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):
        text = json.dumps(_sorted_managers(json.loads(text)), sort_keys=True, separators=(",", ":"))
    text = _QUOTED_MANAGERS.sub("managedFields:*", text)
    text = _AGES.sub('"*"', _CONTINUE.sub("*", _MOVING.sub(r"\2:*", text)))
    return _SUFFIX.sub(r"\1*", _TIMES.sub("*", _UIDS.sub("*", text)))


# What is said, by area

Maker = Callable[[random.Random, str], list[Request]]
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_NUMBERS = (
    "1",
    "1.0",
    "1e2",
    "1e400",
    "-1e400",
    "123456789012345678901234567890",
    "0.1",
    "-0",
    "1E+2",
    "9223372036854775808",
)
_VALUES: tuple[Any, ...] = (None, True, 1, -1, 1.5, "", "a", "1", [], {}, [1], {"a": 1}, "x" * 300, "é", "\u0000")


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def numbers(choice: random.Random, name: str) -> list[Request]:
    """Numbers where others are wanted, in bodies and patches of built-in and custom kinds."""
    number = choice.choice(_NUMBERS)
    place = choice.choice(('"spec":{"replicas":%s}', '"metadata":{"generation":%s}', '"spec":{"minReadySeconds":%s}'))
    head = f'"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}"}}'
    body = f"{{{head},{place % number}}}".encode()
    path = "/apis/apps/v1/namespaces/default/deployments"
    crd = f'{{"apiVersion":"differ.example/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{{"n":{number}}}}}'
    things = "/apis/differ.example/v1/namespaces/default/things"
    return [
        Request("POST", path, body),
        Request("POST", things, crd.encode()),
        Request("GET", f"{things}/{name}"),
        Request("PATCH", f"{things}/{name}", b'{"spec":{"n":%b}}' % choice.choice(_NUMBERS).encode(), MERGE),
        Request(
            "PATCH", f"{things}/{name}", b'[{"op":"add","path":"/spec/m","value":%b}]' % number.encode(), JSON_PATCH
        ),
        Request("DELETE", f"{things}/{name}"),
    ]


def media(choice: random.Random, name: str) -> list[Request]:
    """Content types and accepted types, right and wrong."""
    types = (
        JSON, "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", "*/*", "application/*",
        "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json; charset=utf-8", "application/json;q=0", MERGE, APPLY, ";",
        "application/json,application/yaml",
    )  # fmt: skip
    body = _dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    where = choice.choice(
        (MAPS, DEFINITIONS, "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/differ.example/v1/things")
    )
    return [
        Request("POST", where, body, choice.choice(types), choice.choice(types)),
        Request("GET", where + choice.choice(("", f"/{name}", "?limit=1")), accept=choice.choice(types)),
        Request("PATCH", f"{where}/{name}", b"{}", choice.choice(types), choice.choice(types)),
        Request("DELETE", f"{where}/{name}", None, accept=choice.choice(types)),
    ]


def definitions(choice: random.Random, name: str) -> list[Request]:
    """Definitions with something wrong in them, and their neighbours among the aggregator's objects."""
    group = f"{name}.example"
    spec: dict[str, Any] = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "others", "kind": "Other"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    }
    target = choice.choice((spec, spec["names"], spec["versions"][0], spec["versions"][0]["schema"]["openAPIV3Schema"]))
    target[choice.choice((*target, "type", "items", "default", "unknown"))] = choice.choice(_VALUES)
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    body["metadata"] = {"name": f"others.{group}"}
    patch = _dump({"spec": {choice.choice(tuple(spec)): choice.choice(_VALUES)}})
    path = f"{DEFINITIONS}/others.{group}"
    return [
        Request("POST", f"{DEFINITIONS}?fieldValidation={choice.choice(('Strict', 'Warn', 'Ignore'))}", _dump(body)),
        Request("GET", path, awaits='"InitialNamesAccepted"'),
        Request("PATCH", path, patch, choice.choice((MERGE, APPLY + "?", JSON_PATCH))),
        Request("DELETE", path, _dump({"preconditions": {"uid": choice.choice(("", "x"))}})),
        Request("DELETE", path),
    ]


def paths(choice: random.Random, name: str) -> list[Request]:
    """Paths beside those that exist."""
    groups = ("apps", "gone.example", "", "differ.example", "extensions", "batch", "APPS")
    versions = ("v1", "v1beta1", "v9", "", "V1")
    tails = (
        "",
        "/",
        "/deployments",
        "/namespaces/default/deployments",
        f"/things/{name}",
        "/namespaces//things",
        "/watch/things?resourceVersion=x",
    )
    methods = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO")
    path = f"/apis/{choice.choice(groups)}/{choice.choice(versions)}{choice.choice(tails)}"
    return [Request(choice.choice(methods), choice.choice((path, path.replace("/apis/", "/api/", 1), f"/{name}")))]


def objects(choice: random.Random, name: str) -> list[Request]:
    """Config maps with odd values in odd places, written in every way."""
    value = choice.choice(_VALUES)
    place = choice.choice(("data", "binaryData", "immutable", "metadata", "kind", "apiVersion", "unknown"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    odd = {**body, place: value}
    meta = choice.choice(
        ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "resourceVersion", "uid")
    )
    marked = {**body, "metadata": {"name": name, meta: choice.choice(_VALUES)}}
    validation = f"?fieldValidation={choice.choice(('Strict', 'Warn', 'Ignore', 'Wrong'))}"
    return [
        Request("POST", MAPS + validation, _dump(choice.choice((odd, marked)))),
        Request("POST", MAPS, _dump(body)),
        Request("PUT", f"{MAPS}/{name}{validation}", _dump(choice.choice((odd, marked)))),
        Request("PATCH", f"{MAPS}/{name}", _dump({place: value}), choice.choice((MERGE, STRATEGIC))),
        Request("PATCH", f"{MAPS}/{name}?fieldManager=m", _dump(odd), APPLY),
        Request("GET", f"{MAPS}?fieldSelector=metadata.name%3D{name}"),
        Request("DELETE", f"{MAPS}/{name}"),
    ]


AREAS: dict[str, Maker] = {
    "definitions": definitions,
    "media": media,
    "numbers": numbers,
    "objects": objects,
    "paths": paths,
}


# Comparing


class Comparison:
    """Two servers, and the kinds of differences that were printed already."""

    def __init__(self, ours: Peer, theirs: Peer) -> None:
        self._ours, self._theirs = ours, theirs
        self._known: set[str] = set()
        self.exchanges = 0

    def converse(self, make: Callable[[str], list[Request]], names: Iterator[str]) -> None:
        """Hold one conversation; print the smallest part of it that shows a new kind of difference."""
        requests = make(next(names))
        found = self._differing(requests)
        if found is None:
            return
        kind = _kind(*found)
        if kind in self._known:
            return
        self._known.add(kind)
        kept = list(range(requests.index(found[0]) + 1))
        for leaving in kept[:-1]:
            fewer = [position for position in kept if position != leaving]
            again = make(next(names))
            smaller = self._differing([again[position] for position in fewer])
            if smaller is not None and _kind(*smaller) == kind:
                kept, found, requests = fewer, smaller, again
        print("\n".join(f"  {requests[position]}" for position in kept))
        print(f"  ours:   {found[1].show(found[2])}\n  theirs: {found[2].show(found[1])}\n", flush=True)

    def _differing(self, requests: list[Request]) -> tuple[Request, Answer, Answer] | None:
        first: tuple[Request, Answer, Answer] | None = None
        for request in requests:  # to the end, so that both are left in the same state
            ours, theirs = self._ours.say(request), self._theirs.say(request)
            self.exchanges += 1
            if ours != theirs and first is None:
                first = request, ours, theirs
        return first

    @property
    def differences(self) -> int:
        return len(self._known)


def _kind(request: Request, ours: Answer, theirs: Answer) -> str:
    """What makes two differences the same: the request's shape, the statuses, and the words without values."""
    at = next((at for at, (a, b) in enumerate(zip(ours.body, theirs.body, strict=False)) if a != b), 0)
    words = [re.sub(r'"[^"]*"|\d+', "_", answer.body[max(0, at - 40) : at + 60]) for answer in (ours, theirs)]
    path = re.sub(r"\bt\d+\b", "t", request.path.partition("?")[0])
    return f"{request.method} {path} {ours.status} {theirs.status} {ours.kind} {theirs.kind} {words}"


@contextmanager
def _kube_apiserver(program: str, etcd: str, folder: Path, tokens: Path) -> Iterator[int]:
    """Run both until the block ends; the port."""
    port, client, peer = free_port(), free_port(), free_port()
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    store = f"http://127.0.0.1:{client}"
    commands: Sequence[Sequence[str]] = (
        (etcd, "--data-dir", str(folder / "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
         "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "error"),
        (program, "--etcd-servers", store, "--secure-port", str(port), "--bind-address", "127.0.0.1",
         "--token-auth-file", str(tokens), "--service-account-issuer", "https://x",
         "--service-account-key-file", str(key),
         "--service-account-signing-key-file", str(key), "--cert-dir", str(folder / "certs"),
         "--disable-admission-plugins", "ServiceAccount", "--authorization-mode", "AlwaysAllow"),
    )  # fmt: skip
    with ExitStack() as undoing:
        for number, command in enumerate(commands):
            log = undoing.enter_context((folder / f"peer{number}.log").open("wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log)
            undoing.callback(process.wait)
            undoing.callback(process.terminate)
        deadline = time.monotonic() + READY_SECONDS
        while Peer(port).say(Request("GET", "/readyz")).status != 200:
            if time.monotonic() > deadline:
                raise SystemExit((folder / "peer1.log").read_text()[-2000:])
            time.sleep(0.2)
        yield port


def main() -> int:
    """Compare until so many requests were exchanged; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kube-apiserver", required=True)
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--exchanges", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", choices=sorted(AREAS))
    flags = parser.parse_args()
    choice = random.Random(flags.seed)
    with tempfile.TemporaryDirectory(prefix="pilothouse-differential-") as name, ExitStack() as undoing:
        folder = Path(name)
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        theirs = undoing.enter_context(_kube_apiserver(flags.kube_apiserver, flags.etcd, folder, tokens))
        port = free_port()
        own = [f"--data-dir={folder / 'data'}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        own += [
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
            "--authorization-mode=AlwaysAllow",
        ]
        undoing.enter_context(running_server(own, port, TOKEN, folder / "own.log"))
        return _compare(Comparison(Peer(port), Peer(theirs)), choice, flags.exchanges, flags.area, (port, theirs))


def _compare(
    comparison: Comparison, choice: random.Random, exchanges: int, area: str | None, ports: tuple[int, ...]
) -> int:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.differ.example"},
        "spec": {
            "group": "differ.example",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    for port in ports:
        peer = Peer(port)
        peer.say(Request("POST", DEFINITIONS, _dump(definition)))
        while peer.say(Request("GET", "/apis/differ.example/v1/things")).status != 200:
            time.sleep(0.1)
        # Managers are ordered by the seconds of their writes, which differ: without them all forms can be compared.
        reset = b'{"metadata":{"managedFields":[{}]}}'
        peer.say(Request("PATCH", f"{DEFINITIONS}/things.differ.example", reset, MERGE))
    names = (f"t{number}" for number in range(1 << 30))
    while comparison.exchanges < exchanges:
        maker = AREAS[area or choice.choice(sorted(AREAS))]
        state = choice.getstate()

        def again(name: str, maker: Maker = maker, state: Any = state) -> list[Request]:
            """The same conversation under another name."""
            choice.setstate(state)
            return maker(choice, name)

        comparison.converse(again, names)
        choice.random()
    print(f"{comparison.exchanges} exchanges, {comparison.differences} kinds of differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
