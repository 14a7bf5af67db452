"""What is said to two servers that are compared, and their answers without what differs between any two servers."""

from __future__ import annotations

import json
import re
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from typing import Any

TOKEN = "differential"
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
    user: str = ""
    """Who says it, a user without rights of its own; the administrator where nobody is named."""
    unordered: bool = False
    """Whether errors come in the order of a Go map, which is another one each time."""

    def __str__(self) -> str:
        user = f" as {self.user}" if self.user else ""
        body = "" if self.body is None else f" {self.kind} {self.body[:600].decode(errors='backslashreplace')}"
        return f"{self.method} {self.path} [{self.accept}]{user}{body}"


@dataclass(frozen=True)
class Answer:
    """What came back, as far as it can be compared."""

    status: int
    kind: str
    body: str
    warnings: tuple[str, ...] = ()

    def show(self, other: Answer) -> str:
        """The answer, from shortly before it differs from another."""
        pairs = enumerate(zip(self.body, other.body, strict=False))
        differs = next((at for at, (mine, yours) in pairs if mine != yours), min(len(self.body), len(other.body)))
        begin = max(0, differs - 200)
        warnings = "" if self.warnings == other.warnings else f" {self.warnings}"
        return f"{self.status} {self.kind}{warnings} {'…' if begin else ''}{self.body[begin : differs + 300]}"


class Peer:
    """A server to talk to, on one connection."""

    def __init__(self, port: int, token: str = TOKEN) -> None:
        self._port = port
        self._token = token
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
        headers = {"Authorization": f"Bearer {self._token}", "Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.kind
        if request.user:
            headers["Impersonate-User"] = request.user
        for _ in range(2):
            if self._connection is None:
                context = ssl._create_unverified_context()
                self._connection = HTTPSConnection("127.0.0.1", self._port, timeout=30, context=context)
            try:
                self._connection.request(request.method, request.path, request.body, headers)
                answer = self._connection.getresponse()
                warnings = [normal(text.encode("latin-1")) for text in answer.headers.get_all("Warning", ())]
                body = normal(answer.read(), unordered=request.unordered)
                return Answer(answer.status, answer.getheader("Content-Type", ""), body, tuple(sorted(warnings)))
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
_QUOTED_MANAGERS = re.compile(
    r'managedFields\\+":\[.*?\}\]\}(?=[,}])|\\+"status\\+":\{(?:\}\}|\\+"conditions.*?)(?=\\": )'
)
"""Of objects that messages quote: their order, and what controllers have done so far."""
_AGES = re.compile(r'"(?:\d+[dhms])+"|(?<=\n  - )\d+s(?=\n)|(?<="serverAddress":)"[^"]*"')
_BUILD = re.compile(r"(?:k8s/|k8s\.io/kubernetes/)?(?=pkg/api/legacyscheme)")
"""Where kube-apiserver was built."""
_ADDRESS = re.compile(r"\b10\.0\.0\.\d+")
"""Of services."""
_NODE_PORT = re.compile(r"\b3[0-2]\d{3}\b")
_SELF_TYPE = re.compile(r"\bselfType\d+")
_RECORD = re.compile(r"(?<=in record \()\d+(?=\))")
_PROTOBUF = b"k8s\0"
_NUMBERS_ALONE = re.compile(rb"[0-9]+")
_CONTINUE = re.compile(r"eyJ2Ijoi[A-Za-z0-9_-]+|eyJhbGci[A-Za-z0-9_.-]+")
"""Places in lists, and tokens."""


def normal(data: bytes, *, unordered: bool = False) -> str:
    """The text without what differs between any two servers; JSON with its keys sorted."""
    if data.startswith(_PROTOBUF):
        data = json.dumps(_fields(data[len(_PROTOBUF) :])).encode()
    text = data.decode("utf-8", "backslashreplace")
    with suppress(ValueError):
        lines = text.splitlines() if text.startswith('{"type":') else [text]
        value: Any = _sorted_managers([json.loads(line) for line in lines] if len(lines) > 1 else json.loads(text))
        if unordered and isinstance(value, dict):
            _sort_errors(value)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    text = _QUOTED_MANAGERS.sub("managedFields:*", text)
    text = _AGES.sub('"*"', _CONTINUE.sub("*", _MOVING.sub(r"\2:*", text)))
    text = _SELF_TYPE.sub("selfType", text)
    text = _RECORD.sub("*", _BUILD.sub("", _ADDRESS.sub("10.0.0.*", _NODE_PORT.sub("*", text))))
    return _SUFFIX.sub(r"\1*", _TIMES.sub("*", _UIDS.sub("*", text)))


def _sort_errors(status: dict[str, Any]) -> None:
    """Put the causes of a Status in order, and the words of its message, which lists them."""
    causes = (status.get("details") or {}).get("causes")
    message = status.get("message")
    if isinstance(message, str) and (causes or "\n" in message or "[" in message):
        status["message"] = " ".join(sorted(filter(None, re.split(r"[\s,\[\]]+", message))))
    if causes:
        causes.sort(key=lambda cause: json.dumps(cause, sort_keys=True))


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
