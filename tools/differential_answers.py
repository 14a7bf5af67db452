"""What is said to two servers that are compared, and their answers without what differs between any two servers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from differential_connection import Connection, HungUp, Reply

TOKEN = "differential"
JSON = "application/json"
_MOST_ASKED = 100
_SHOWN = 3000
"""How much of a body is printed."""


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
    user: str = ""
    """Who says it, a user without rights of its own; the administrator where nobody is named."""
    unordered: bool = False
    """Whether errors come in the order of a Go map, which is another one each time."""
    headers: tuple[tuple[str, str], ...] = ()
    """Other headers of the request."""
    keeps: str = ""
    """A name for the answer: later requests say ``$(name.rv)``, ``$(name.uid)`` and ``$(name.continue)``."""

    def __str__(self) -> str:
        user = f" as {self.user}" if self.user else ""
        body = "" if self.body is None else f" {self.kind} {self.body[:_SHOWN].decode(errors='backslashreplace')}"
        headers = "".join(f" {name}: {value}" for name, value in self.headers)
        return f"{self.method} {self.path} [{self.accept}]{headers}{user}{body}"


@dataclass(frozen=True)
class Answer:
    """What came back, as far as it can be compared."""

    status: int
    kind: str
    body: str
    warnings: tuple[str, ...] = ()
    headers: tuple[bytes, ...] = ()

    def show(self, other: Answer) -> str:
        """The answer, from shortly before it differs from another."""
        pairs = enumerate(zip(self.body, other.body, strict=False))
        differs = next((at for at, (mine, yours) in pairs if mine != yours), min(len(self.body), len(other.body)))
        begin = max(0, differs - 200)
        warnings = "" if self.warnings == other.warnings else f" {self.warnings}"
        warnings += "" if self.headers == other.headers else f" {self.headers}"
        return f"{self.status} {self.kind}{warnings} {'…' if begin else ''}{self.body[begin : differs + 300]}"


class Peer:
    """A server to talk to, on one connection."""

    def __init__(self, port: int, token: str = TOKEN) -> None:
        self._port = port
        self._token = token
        self._connection: Connection | None = None
        self._kept: dict[str, str] = {}

    def say(self, request: Request) -> Answer:
        """Its answer; status 0 when it hung up."""
        self._begin(request)
        return self._answer(request, self._end(request))

    def forget(self) -> None:
        """Another conversation begins."""
        self._kept.clear()

    def _begin(self, request: Request) -> None:
        """Send a request; what goes wrong shows when its answer is read."""
        request = self._filled(request)
        headers = f"Authorization: Bearer {self._token}\r\nAccept: {request.accept}\r\n"
        if request.body is not None:
            headers += f"Content-Type: {request.kind}\r\n"
        if request.user:
            headers += f"Impersonate-User: {request.user}\r\n"
        headers += "".join(f"{name}: {value}\r\n" for name, value in request.headers)
        try:
            if self._connection is None:
                self._connection = Connection(self._port)
            self._connection.send(request.method, request.path, headers, request.body)
        except OSError:
            self._forget_connection()

    def _end(self, request: Request) -> Reply:
        """The answer to what was begun; once more on a new connection where the old one was closed."""
        for last in (False, True):
            try:
                if self._connection is not None:
                    reply = self._connection.receive()
                    if request.keeps:
                        self._keep(request.keeps, reply.body)
                    return reply
            except (OSError, HungUp, ValueError):
                self._forget_connection()
            if not last:
                self._begin(request)
        return Reply(0, "", b"")

    def _forget_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answer(self, request: Request, reply: Reply) -> Answer:
        """The answer without what must differ, after as many more requests as it takes to hear what is awaited."""
        answer = self._normal(request, reply)
        for _ in range(_MOST_ASKED if request.awaits else 0):
            if request.awaits in answer.body or (answer.status == 404 and answer.kind):
                break
            time.sleep(0.02)
            self._begin(request)
            answer = self._normal(request, self._end(request))
        return answer

    def _normal(self, request: Request, reply: Reply) -> Answer:
        told = tuple(sorted(self._without_versions(normal(text)) for text in reply.warnings))
        body = self._without_versions(normal(reply.body, unordered=request.unordered))
        return Answer(reply.status, reply.kind, body, told, tuple(reply.headers))

    def _without_versions(self, text: str) -> str:
        """A text without the versions that were remembered, which messages tell; short numbers mean something else."""
        for name, value in self._kept.items():
            if name.endswith(".rv)") and len(value) > 3 and value in text:
                text = re.sub(rf"\b{value}\b", "rv", text)
        return text

    def _keep(self, name: str, body: bytes) -> None:
        """Remember of an object or a list what later requests refer to."""
        with suppress(ValueError, AttributeError):
            metadata = json.loads(body).get("metadata") or {}
            for field, key in (("rv", "resourceVersion"), ("uid", "uid"), ("continue", "continue")):
                if metadata.get(key):
                    self._kept[f"$({name}.{field})"] = metadata[key]

    def _filled(self, request: Request) -> Request:
        """The request with what was remembered in the place of its names."""
        if "$(" not in request.path and b"$(" not in (request.body or b""):
            return request
        path, body = request.path, request.body
        for name, value in self._kept.items():
            path = path.replace(name, value)
            body = None if body is None else body.replace(name.encode(), value.encode())
        return replace(request, path=path, body=body)


def ask_both(ours: Peer, theirs: Peer, request: Request) -> tuple[Answer, Answer]:
    """The answers of two servers that work on the same request at the same time; equal ones are not looked at long."""
    ours._begin(request)
    theirs._begin(request)
    mine, yours = ours._end(request), theirs._end(request)
    alike = mine[:2] == yours[:2] and mine[3:] == yours[3:] and not request.awaits
    if alike and _QUICK.sub(b"", mine.body) == _QUICK.sub(b"", yours.body):
        same = Answer(mine.status, mine.kind, "")
        return same, same
    return ours._answer(request, mine), theirs._answer(request, yours)


_QUICK = re.compile(
    rb'"(?:uid|resourceVersion|continue)":"[^"\\]*"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'
    rb"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
"""Most of what differs: where no more does, two answers are the same."""
_MOVING = re.compile(
    r'(\\*"|\b)(uid|resourceVersion|creationTimestamp|time|deletionTimestamp|continue)(\\*"|):( ?)\\*"[^"\\]*\\*"'
)
_UIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SUFFIX = re.compile(r"(\bt\d+-)[a-z0-9]{5}\b")
_QUOTED_MANAGERS = re.compile(
    r'managedFields\\+":\[.*?\}\]\}(?=[,}])|\\+"status\\+":\{(?:\}\}|\\+"conditions.*?)(?=\\": )'
)
"""Of objects that messages quote: their order, and what controllers have done so far."""
_AGES = re.compile(r'"(?:\d+[dhms])+"|(?<=\n  - )\d+s(?=\n)|(?<="serverAddress":)"[^"]*"')
_BUILD = re.compile(r"(?:k8s/|k8s\.io/kubernetes/)?(?=pkg/api/legacyscheme)")
"""Where kube-apiserver was built."""
_ADDRESS = re.compile(r"\b(?:10\.0\.0|192\.168\.7)\.\d+")
"""Of services, from the first range and one that conversations make."""
_NODE_PORT = re.compile(r"\b3[0-2]\d{3}\b")
_SELF_TYPE = re.compile(r"\bselfType\d+")
_RECORD = re.compile(
    r"(?<=in record \()\d+(?=\))|(?<=in the precondition \()\d+(?=\))|(?<=ResourceVersion in object meta: )\d+"
)
_PROTOBUF = b"k8s\0"
_NUMBERS_ALONE = re.compile(rb"[0-9]+")
_DESCRIPTIONS = re.compile(r',?"description":"(?:[^"\\]|\\.)*"')
"""In documents of OpenAPI some are in words of our own."""
_CONTINUE = re.compile(r"eyJ2Ijoi[A-Za-z0-9_-]+|eyJhbGci[A-Za-z0-9_.-]+")
"""Places in lists, and tokens."""


def normal(data: bytes, *, unordered: bool = False) -> str:
    """The text without what differs between any two servers; JSON with its keys sorted."""
    if data[:1] == b"\0" and _PROTOBUF in data[:64]:
        data = json.dumps([_fields(each) for each in _frames(data)]).encode()
    if data.startswith(_PROTOBUF):
        data = json.dumps(_fields(data[len(_PROTOBUF) :])).encode()
    text = data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):
        lines = text.splitlines() if text.startswith('{"type":') else [text]
        value: Any = _sorted_managers([json.loads(line) for line in lines] if len(lines) > 1 else json.loads(text))
        if unordered and isinstance(value, dict):
            _sort_errors(value)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        if text.startswith('{"components"'):
            text = _DESCRIPTIONS.sub("", text)
    text = _QUOTED_MANAGERS.sub("managedFields:*", text)
    text = _AGES.sub('"*"', _CONTINUE.sub("*", _MOVING.sub(r"\2:*", text)))
    text = _SELF_TYPE.sub("selfType", text)
    text = _RECORD.sub("*", _BUILD.sub("", _ADDRESS.sub("10.0.0.*", _NODE_PORT.sub("*", text))))
    return _SUFFIX.sub(r"\1*", _TIMES.sub("*", _UIDS.sub("*", text)))


def _frames(data: bytes) -> Iterator[bytes]:
    """The events of a watch, each behind its length."""
    while data:
        length = int.from_bytes(data[:4])
        yield data[4 : 4 + length]
        data = data[4 + length :]


def _sort_errors(status: dict[str, Any]) -> None:
    """Put the causes of a Status in order, and the words of its message, which lists them; rules of a review too."""
    if isinstance(said := status.get("status"), dict):
        for rules in ("resourceRules", "nonResourceRules"):
            said[rules] = sorted(said.get(rules) or (), key=lambda rule: json.dumps(rule, sort_keys=True))
    causes = (status.get("details") or {}).get("causes")
    message = status.get("message")
    if isinstance(message, str):
        message = _UIDS.sub("*", _TIMES.sub("*", message))  # which would be sorted by what they are
    if isinstance(message, str) and (causes or "\n" in message or "[" in message):
        status["message"] = " ".join(sorted(filter(None, re.split(r"[\s,\[\]]+", message))))
    if causes:
        causes.sort(key=lambda cause: json.dumps(cause, sort_keys=True))


def _fields(data: bytes) -> Any:
    """A protobuf message as a list of numbers and values, without its versions and times; text where it is none."""
    found, at = [], 0
    if data.startswith(_PROTOBUF):
        data = data[len(_PROTOBUF) :]
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


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def _sorted_managers(value: Any) -> Any:
    """Managed fields are ordered by times, which differ; here by what else they say."""
    if isinstance(value, list):
        return [_sorted_managers(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _sorted_managers(item) for key, item in value.items()}
    if isinstance(managers := fields.get("managedFields"), list):
        managers.sort(
            key=lambda entry: json.dumps({**entry, "time": ""}, sort_keys=True) if isinstance(entry, dict) else ""
        )
    return fields
