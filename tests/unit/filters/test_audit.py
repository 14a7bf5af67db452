import asyncio
from types import SimpleNamespace

import orjson
import pytest

from pilothouse.audit.policy import parse_policy
from pilothouse.authn.user import User
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.filters.audit import Auditing, with_audit
from pilothouse.machinery import errors
from pilothouse.net.messages import ClientDisconnected, Response

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n"


class Sink:
    def __init__(self, answer=True):
        self.events = []
        self.answer = answer

    async def process(self, records):
        self.events += [orjson.loads(record.line) for record in records]
        return self.answer

    async def close(self):
        pass


def make(method="GET", target="/api/v1/namespaces/a/pods"):
    path, _, query = target.partition("?")
    return SimpleNamespace(
        method=method,
        target=target.encode(),
        path=path,
        query=query,
        headers={},
        connection=SimpleNamespace(peer=("192.0.2.1", 1)),
        info=resolve(method, path, Query(query)),
        audit_id="id",
        audit=None,
        credential_notes=(("k", "v"),),
        timed_out=False,
        user=User("jane"),
        options=Query(query),
    )


async def run(handler, request=None, rules="- {level: RequestResponse}\n", answer=True):
    sink = Sink(answer)
    auditing = Auditing(parse_policy((HEAD + rules).encode()), sink)
    try:
        response = await with_audit(handler, auditing)(request or make())
    except BaseException as error:
        response = error
    return response, sink.events


def answering(response):
    async def handle(request):
        return response

    return handle


async def test_nothing_is_made_where_nothing_is_wanted():
    request = make()
    _, events = await run(answering(Response(200)), request, "- {level: None}\n")
    assert (events, request.audit) == ([], None)


async def test_an_ordinary_request():
    _, events = await run(answering(Response(200, b'{"kind":"PodList","items":[]}')))
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseComplete"]
    assert events[1]["responseObject"] == {"kind": "PodList", "items": []}
    assert events[1]["annotations"] == {"k": "v"}


async def test_parts_are_joined_and_still_sent():
    response, events = await run(answering(Response(200, parts=iter([b'{"a":', b"1}"]), length=7)))
    assert events[1]["responseObject"] == {"a": 1}
    assert b"".join(response.parts) == b'{"a":1}'


@pytest.mark.parametrize(
    ("content", "body", "known"),
    [
        (b"application/yaml", b"a: 1", {"a": 1}),
        (b"text/plain", b"a: 1", None),
        (b"application/json", b"{", None),
        (b"application/vnd.kubernetes.protobuf", b"k8s\0broken", None),
    ],
)
async def test_answers_in_other_forms(content, body, known):
    _, events = await run(answering(Response(200, body, content)))
    assert events[1].get("responseObject") == known


async def test_a_watch_ends_when_its_stream_does():
    async def stream(writer):
        writer.append("streamed")

    response, events = await run(answering(Response(200, stream=stream)), make(target="/api/v1/pods?watch=1"))
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted"]
    seen = []
    await response.stream(seen)
    assert seen == ["streamed"]
    assert events[-1]["stage"] == "ResponseComplete"


@pytest.mark.parametrize(
    ("error", "stage", "status"),
    [
        (
            RuntimeError("secret text"),
            "Panic",
            {"status": "Failure", "message": "APIServer panic'd: RuntimeError", "reason": "InternalError", "code": 500},
        ),
        (errors.bad_request("no"), "ResponseComplete", {"message": "no", "reason": "BadRequest", "code": 400}),
        (ClientDisconnected("gone"), "ResponseComplete", {"message": "Connection closed early", "code": 200}),
        (asyncio.CancelledError(), "ResponseComplete", {"message": "Connection closed early", "code": 200}),
    ],
)
async def test_failures(error, stage, status):
    async def fail(request):
        raise error

    raised, events = await run(fail)
    assert raised is error
    assert events[-1]["stage"] == stage
    assert events[-1]["responseStatus"].items() >= status.items()


async def test_time_outs():
    async def fail(request):
        request.timed_out = True
        raise asyncio.CancelledError

    _, events = await run(fail)
    assert (events[-1]["responseStatus"]["code"], events[-1]["responseStatus"]["reason"]) == (504, "Timeout")


async def test_what_cannot_be_written_down_is_not_done():
    done = []

    async def handle(request):
        done.append(request)
        return Response(200)

    response, _ = await run(handle, answer=False)
    assert response.status == 500
    assert orjson.loads(response.body)["message"] == "Internal error occurred: failed to store audit event"
    assert done == []


async def test_refusals_are_noted_without_a_user():
    sink = Sink()
    auditing = Auditing(parse_policy((HEAD + "- {level: Metadata}\n").encode()), sink)
    body = orjson.dumps(errors.unauthorized("Unauthorized").status)
    await auditing.note_refusal(make(), Response(401, body))
    (event,) = sink.events
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"]["reason"] == "Unauthorized"
