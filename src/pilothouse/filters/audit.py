"""Writing down what was asked and what came of it.

    RequestReceived    before anything is done
    ResponseStarted    long-running requests only, when the answer begins
    ResponseComplete   when the answer is made, or a stream or a connection that was taken over has ended
    Panic              when the server failed

A request whose first event cannot be stored is not served where the policy insists (``blocking-strict``). Requests that
fail to authenticate never come here: ``Auditing.note_refusal`` is for them.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from pilothouse.audit.events import Event, RawObject
from pilothouse.audit.metrics import AuditMetrics
from pilothouse.audit.policy import NONE, PANIC, REQUEST_RECEIVED, RESPONSE_COMPLETE, RESPONSE_STARTED, Policy, Verdict
from pilothouse.audit.sinks import Sink
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.refusals import undecided
from pilothouse.filters.timeout import is_long_running
from pilothouse.filters.types import Handler
from pilothouse.filters.upgrades import until_lost
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import BodyWriter, ClientDisconnected, MalformedBody, Response

logger = logging.getLogger(__name__)
_CLOSING_SECONDS: Final = 30.0
_LARGE: Final = 128 * 1024
_HEAD: Final = 1024
_KIND: Final = re.compile(rb'^\{(?:"apiVersion":"[^"\\]*",)?"kind":"(\w+)"')
_CLOSED_EARLY: Final = {"status": "Success", "message": "Connection closed early", "code": 200}


class Auditing:
    """The policy and where events go."""

    def __init__(
        self, policy: Policy, sink: Sink, metrics: AuditMetrics | None = None, supervisor: Supervisor | None = None
    ) -> None:
        self.policy, self.sink, self.metrics = policy, sink, metrics or AuditMetrics()
        self._supervisor = supervisor or Supervisor("audit")
        self._storing: set[asyncio.Future[bool]] = set()

    async def start(self) -> None:
        """Nothing to wait for."""

    def judge(self, request: APIRequest, user: User | None) -> Verdict:
        """What to write down about a request."""
        verdict = self.policy.judge(user, request.info)
        self.metrics.note_level(verdict.level)
        return verdict

    async def store(self, event: Event, stage: str) -> bool:
        """Store an event at a stage, unless that stage is left out."""
        if stage in event.omitted:
            return True
        self.metrics.events.value += 1
        return await self.sink.process((await weighed(event.weight, event.record, stage),))

    async def note_refusal(self, request: APIRequest, response: Response) -> None:
        """Somebody could not be authenticated."""
        verdict = self.judge(request, None)
        if verdict.level != NONE:
            event = Event(request, verdict, None)
            await _note_response(event, response, wanted=True)
            await self.store(event, RESPONSE_STARTED)

    def store_soon(self, event: Event, stage: str) -> None:
        """Store an event for a caller that cannot wait."""
        task = self._supervisor.spawn("audit event", self.store(event, stage))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def close(self) -> None:
        """Let the last events out; whoever does not take them for half a minute does not get them."""
        try:
            async with asyncio.timeout(_CLOSING_SECONDS):
                await asyncio.gather(*self._storing, return_exceptions=True)
                await self.sink.close()
        except TimeoutError:
            logger.error("the last audit events are lost: they could not be stored within %g s", _CLOSING_SECONDS)


def with_audit(following: Handler, auditing: Auditing) -> Handler:
    """Make events for every request that the policy names."""
    judge, store = auditing.judge, auditing.store

    async def handle(request: APIRequest) -> Response:
        verdict = judge(request, request.user)
        if verdict.level == NONE:
            return await following(request)
        event = request.audit = Event(request, verdict, request.user)
        if not await store(event, REQUEST_RECEIVED):
            auditing.metrics.rejected.value += 1
            return undecided(request, "failed to store audit event")
        try:
            response = await following(request)
        except (Exception, asyncio.CancelledError) as error:
            await _note_failure(auditing, event, request, error)
            raise
        return await _note_answer(auditing, event, request, response)

    return handle


async def _note_answer(auditing: Auditing, event: Event, request: APIRequest, response: Response) -> Response:
    streamed = response.stream is not None or response.upgrade is not None
    wanted = not streamed and (event.wants_response or (event.status is None and request.method == "DELETE"))
    await _note_response(event, response, wanted=wanted)
    if is_long_running(request):
        await auditing.store(event, RESPONSE_STARTED)
    if response.upgrade is not None:
        response.upgrade = until_lost(response.upgrade, lambda: auditing.store_soon(event, RESPONSE_COMPLETE))
    elif response.stream is not None and request.method != "HEAD":
        response.stream = _until_the_end(response.stream, lambda: auditing.store(event, RESPONSE_COMPLETE))
    else:
        await auditing.store(event, RESPONSE_COMPLETE)
    return response


def _until_the_end(
    stream: Callable[[BodyWriter], Awaitable[None]], finish: Callable[[], Awaitable[bool]]
) -> Callable[[BodyWriter], Awaitable[None]]:
    async def streaming(writer: BodyWriter) -> None:
        try:
            await stream(writer)
        finally:
            await finish()

    return streaming


async def _note_failure(auditing: Auditing, event: Event, request: APIRequest, error: BaseException) -> None:
    stage = RESPONSE_COMPLETE
    if isinstance(error, errors.StatusError):
        event.status = error.status
        event.note_response(error.code, None)
    elif isinstance(error, asyncio.CancelledError) and request.timed_out:
        timeout = errors.timeout("request did not complete within the allotted timeout", 0)
        event.status = timeout.status
        event.note_response(timeout.code, None)
        auditing.store_soon(event, stage)  # it may be the log that took so long
        return
    elif isinstance(error, Exception) and not isinstance(error, ClientDisconnected | MalformedBody):
        panic = errors.StatusError(500, "InternalError", f"APIServer panic'd: {type(error).__name__}")
        event.status = panic.status
        event.note_response(500, None)
        stage = PANIC
    else:
        event.status = dict(_CLOSED_EARLY)
    if stage == RESPONSE_COMPLETE and is_long_running(request):
        await auditing.store(event, RESPONSE_STARTED)
    await auditing.store(event, stage)


async def _note_response(event: Event, response: Response, *, wanted: bool) -> None:
    """Note the answer's code and, where it is ``wanted``, its object. Large ones are read aside."""
    if not wanted:
        event.note_response(response.status, None)
        return
    size = len(response.body) if response.parts is None else response.length or _LARGE
    await weighed(size, lambda: event.note_response(response.status, _read(event, response)))


def _read(event: Event, response: Response) -> Any:
    """The object that an answer carries; None where it carries none that can be told."""
    if response.parts is not None:
        response.parts = list(response.parts)
    data = response.body if response.parts is None else b"".join(response.parts)
    if (b"content-encoding", b"gzip") in response.headers:
        data = gzip.decompress(data)
    if response.content_type.startswith(b"application/json"):
        if len(data) >= _LARGE and not event.omits_managed_fields and (raw := _raw_object(data)) is not None:
            return raw
        try:
            return large_json.loads(data)
        except orjson.JSONDecodeError:
            return None
    if response.content_type.startswith(b"application/yaml"):
        from pilothouse.machinery import yaml_codec

        return yaml_codec.load(data)
    if response.content_type.startswith(b"application/vnd.kubernetes.protobuf"):
        return _from_protobuf(data)
    return None


def _raw_object(data: bytes) -> RawObject | None:
    """A large object as it is: to take it apart would need ten times the room. None if it must not be a line's part."""
    kind = _KIND.search(data, 0, _HEAD)
    if kind is None or kind[1] == b"Status" or data.find(b"\n", 0, len(data) - 1) >= 0:
        return None
    return RawObject(kind[1].decode(), data.removesuffix(b"\n"))


def _from_protobuf(data: bytes) -> Any:
    from pilothouse.apis import types
    from pilothouse.machinery import protobuf

    try:
        envelope = protobuf.decode(data)
        # The oldest discovery documents carry no version of their own.
        gv = parse_group_version(envelope.api_version or "v1")
        struct = types.find_kind(GroupVersionKind(gv.group, gv.version, envelope.kind))
        if struct is None:
            return None
        found = protobuf.decode_message(struct, envelope.raw)
    except ValueError:
        return None
    version = {"apiVersion": envelope.api_version} if envelope.api_version else {}
    return {"kind": envelope.kind, **version, **found}
