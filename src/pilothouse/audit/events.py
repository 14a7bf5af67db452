"""One request in the audit log: what is gathered about it on its way, and its form at each stage.

Everything is in the terms of ``audit.k8s.io/v1``. Objects are kept as bytes from the moment they are seen, because what
follows may change them, and only at levels that want them. Nothing of a request's headers is ever written but its user
agent and the addresses it came from.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from pilothouse.audit.policy import LEVEL_NAMES, REQUEST, REQUEST_RESPONSE, RESPONSE_COMPLETE, Verdict
from pilothouse.audit.sources import source_addresses
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import large_json
from pilothouse.machinery.times import format_duration
from pilothouse.machinery.user import User

HEAD: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'
_MAX_AGENT: Final = 1024
_SLOW_SECONDS: Final = 0.5
_LATENCY: Final = "apiserver.latency.k8s.io/"
_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}
_USERS: dict[int, tuple[User, orjson.Fragment]] = {}
_KEPT_USERS: Final = 2048


class RawObject:
    """An object that an answer carries, as the JSON that was sent."""

    __slots__ = ("data", "kind")

    def __init__(self, kind: str, data: bytes) -> None:
        self.kind, self.data = kind, data


class Record:
    """An event at one stage, ready to be stored: its JSON without kind and apiVersion."""

    __slots__ = ("_shorten", "body")

    def __init__(self, body: bytes, shorten: Callable[[], bytes] | None = None) -> None:
        self.body = body
        self._shorten = shorten

    @property
    def line(self) -> bytes:
        """The whole event on a line of its own, copied once: of megabytes, each copy keeps the interpreter's lock."""
        return b"".join((HEAD, memoryview(self.body)[1:], b"\n"))

    @property
    def size(self) -> int:
        """Bytes of the line."""
        return len(HEAD) + len(self.body)

    def shortened(self) -> Record | None:
        """The event without its objects; None if it never had room for any."""
        return None if self._shorten is None else Record(self._shorten())


class Event:
    """What is known about a request so far."""

    __slots__ = (
        "_agent", "_audit_id", "_constraint", "_impersonated", "_level", "_reference", "_request_object",
        "_response_object", "_sources", "_started", "_target", "_unseen", "_user", "_verb", "annotations",
        "omits_managed_fields", "omitted", "static", "status", "times",
    )  # fmt: skip

    def __init__(self, request: APIRequest, verdict: Verdict, user: User | None) -> None:
        info = request.info
        self._level = verdict.level
        self.omitted = verdict.omitted
        self.static = verdict.static
        self.omits_managed_fields = verdict.omit_managed_fields
        self._started = getattr(request, "received", 0.0) or time.time()
        self._audit_id = request.audit_id
        self._target = request.target.decode("latin-1")
        self._verb = info.verb
        self._user = user
        self._sources = source_addresses(request)
        self._agent = _agent_of(request)
        self._reference: dict[str, str] | None = None
        if info.is_resource:
            self._reference = {
                "resource": info.resource,
                "namespace": info.namespace,
                "name": info.name,
                "uid": "",
                "apiGroup": info.group,
                "apiVersion": info.version,
                "resourceVersion": "",
                "subresource": info.subresource,
            }
        self._impersonated: User | None = None
        self._constraint = ""
        self._unseen = False
        self._request_object: bytes | None = None
        self._response_object: bytes | None = None
        self.status: dict[str, Any] | None = None
        self.annotations: dict[str, str] = dict(request.credential_notes)
        self.times: dict[str, float] = {"authentication": request.authentication_seconds}
        """What the layers of the server took, in seconds; told of requests that were slow."""

    @property
    def wants_request(self) -> bool:
        """Whether the request's object is to be written down whole."""
        return self._level >= REQUEST

    @property
    def weight(self) -> int:
        """About how long it is, in bytes."""
        objects = (self._request_object, self._response_object)
        return sum(map(len, filter(None, objects))) + sum(map(len, self.annotations.values()))

    @property
    def wants_response(self) -> bool:
        """Whether the answer's object is to be written down."""
        return self._level >= REQUEST_RESPONSE

    def judged(self, verdict: Verdict) -> Event:
        """The same event as a verdict that wants less has it."""
        made = copy.copy(self)
        made._level, made.omitted = verdict.level, verdict.omitted
        if verdict.level < REQUEST:
            made._request_object = None
        if verdict.level < REQUEST_RESPONSE:
            made._response_object = None
        return made

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation; the first value of a key stays."""
        self.annotations.setdefault(key, value)

    def note_impersonation(self, user: User, constraint: str) -> None:
        """The request goes on as somebody else."""
        self._impersonated, self._constraint = user, constraint

    def note_object(self, obj: Mapping[str, Any]) -> None:
        """The object that the request carries, decoded and defaulted."""
        reference, metadata = self._reference, obj.get("metadata")
        if reference is not None and isinstance(metadata, Mapping):
            for key in ("namespace", "name", "uid", "resourceVersion"):
                if not reference[key]:
                    reference[key] = metadata.get(key) or ""
        if self._level < REQUEST:
            return
        self._request_object = large_json.dumps(self._kept(obj))

    def note_patch(self, patch: bytes) -> None:
        """The patch that the request carries, as sent."""
        if self._level >= REQUEST:
            try:
                self._request_object = large_json.dumps(large_json.loads(patch))
            except orjson.JSONDecodeError:
                # Apply patches may be YAML.
                self._request_object = orjson.dumps(patch.decode("utf-8", "replace"))

    def overlook_answer(self) -> None:
        """The answer is in a form that the client did not ask for: nothing of it is written down but its code."""
        self._unseen = True

    def note_response(self, code: int, obj: Any) -> None:
        """The answer's code and, where it is wanted and known, its object."""
        if isinstance(obj, RawObject) and not self._unseen and self._level >= REQUEST_RESPONSE:
            self._response_object = obj.data
        # What has no kind is no object: the version, metadata for OpenID clients.
        elif isinstance(obj, dict) and "kind" in obj and not self._unseen:
            if obj["kind"] == "Status" and self.status is None:
                self.status = obj
            if self._level >= REQUEST_RESPONSE:
                self._response_object = large_json.dumps(self._kept(obj))
        status = self.status or {}
        kept = {key: status[key] for key in ("status", "message", "reason") if status.get(key)}
        if status.get("details") is not None:
            kept["details"] = status["details"]
        self.status = {**kept, "code": code}

    def record(self, stage: str) -> Record:
        """The event at a stage, as of now."""
        moment = self._started if stage == "RequestReceived" else time.time()
        # Later stages must not change what is stored here.
        annotations, status = dict(self.annotations), self.status
        if stage == RESPONSE_COMPLETE and moment - self._started > _SLOW_SECONDS:
            annotations.update(self._latencies(moment - self._started))
        plain = self._plain(stage, moment, annotations, status)
        if self._request_object is None and self._response_object is None:
            return Record(orjson.dumps(plain), None if self._level < REQUEST else lambda: _short(plain))
        whole = dict(plain)
        ending = {key: whole.pop(key) for key in ("requestReceivedTimestamp", "stageTimestamp")}
        notes = whole.pop("annotations", None)
        if self._request_object is not None:
            whole["requestObject"] = orjson.Fragment(self._request_object)
        if self._response_object is not None:
            whole["responseObject"] = orjson.Fragment(self._response_object)
        whole.update(ending)
        if notes:
            whole["annotations"] = notes
        return Record(orjson.dumps(whole), lambda: _short(plain))

    def _latencies(self, total: float) -> dict[str, str]:
        taken = {layer: seconds for layer, seconds in self.times.items() if seconds} | {"total": total}
        return {f"{_LATENCY}{layer}": format_duration(round(seconds * 1e9)) for layer, seconds in taken.items()}

    def _plain(
        self, stage: str, moment: float, annotations: dict[str, str], status: dict[str, Any] | None
    ) -> dict[str, Any]:
        event: dict[str, Any] = {
            "level": LEVEL_NAMES[self._level],
            "auditID": self._audit_id,
            "stage": stage,
            "requestURI": self._target,
            "verb": self._verb,
            "user": {} if self._user is None else _user_info(self._user),
        }
        if self._impersonated is not None:
            event["impersonatedUser"] = _user_info(self._impersonated)
            if self._constraint:
                event["authenticationMetadata"] = {"impersonationConstraint": self._constraint}
        if self._sources:
            event["sourceIPs"] = self._sources
        if self._agent:
            event["userAgent"] = self._agent
        if self._reference is not None:
            event["objectRef"] = {key: value for key, value in self._reference.items() if value}
        if status is not None:
            event["responseStatus"] = {"metadata": {}, **status}
        event["requestReceivedTimestamp"] = micro_time(self._started)
        event["stageTimestamp"] = micro_time(moment)
        if annotations:
            event["annotations"] = annotations
        return event

    def _kept(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        return without_managed_fields(obj) if self.omits_managed_fields else obj


def _short(plain: dict[str, Any]) -> bytes:
    return orjson.dumps({**plain, "annotations": {**plain.get("annotations", {}), **_TRUNCATED}})


def without_managed_fields(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object, a list or a Table without the bookkeeping of field managers."""
    kept = dict(obj)
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping) and "managedFields" in metadata:
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    if isinstance(kept.get("items"), list):
        kept["items"] = [without_managed_fields(item) if isinstance(item, dict) else item for item in kept["items"]]
    if kept.get("kind") == "Table" and isinstance(kept.get("rows"), list):
        kept["rows"] = [
            {**row, "object": without_managed_fields(row["object"])} if isinstance(row.get("object"), dict) else row
            for row in kept["rows"]
        ]
    return kept


def _agent_of(request: APIRequest) -> str:
    agent = request.headers.get(b"user-agent", b"").decode("utf-8", "replace")
    return agent if len(agent) <= _MAX_AGENT else agent[:_MAX_AGENT] + "...TRUNCATED"


def _user_info(user: User) -> orjson.Fragment:
    """The user as JSON, made once: identities are shared between requests."""
    known = _USERS.get(id(user))
    if known is not None and known[0] is user:
        return known[1]
    made = orjson.Fragment(orjson.dumps(user.as_info()))
    if len(_USERS) >= _KEPT_USERS:
        _USERS.clear()
    _USERS[id(user)] = (user, made)
    return made


_second: tuple[int, str] = (0, "1970-01-01T00:00:00")


def micro_time(moment: float) -> str:
    """A time with microseconds, as events carry it."""
    global _second
    micros = int(moment * 1_000_000)
    seconds, rest = divmod(micros, 1_000_000)
    if seconds != _second[0]:
        _second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    return f"{_second[1]}.{rest:06d}Z"
