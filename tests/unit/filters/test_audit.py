import asyncio
import gzip
from types import SimpleNamespace

import orjson
import pytest

from pilothouse.audit.policy import parse_policy
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.endpoints.responses import encode_protobuf
from pilothouse.filters.audit import Auditing, with_audit
from pilothouse.machinery import errors
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User
from pilothouse.net.messages import ClientDisconnected, Response, Upgraded

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
        authentication_seconds=0.0,
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
    await auditing.close()
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
    response, events = await run(answering(Response(200, parts=iter([b'{"kind":', b'"A"}']), length=12)))
    assert events[1]["responseObject"] == {"kind": "A"}
    assert b"".join(response.parts) == b'{"kind":"A"}'


@pytest.mark.parametrize(
    ("content", "body", "known"),
    [
        (b"application/yaml", b"kind: A", {"kind": "A"}),
        (b"application/json", b'{"gitVersion": "v1"}', None),
        (b"text/plain", b"a: 1", None),
        (b"application/json", b"{", None),
        (b"application/vnd.kubernetes.protobuf", b"k8s\0broken", None),
        (
            b"application/vnd.kubernetes.protobuf",
            encode_protobuf({"kind": "APIVersions", "versions": ["v1"]}),
            {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": None},
        ),
    ],
)
async def test_answers_in_other_forms(content, body, known):
    _, events = await run(answering(Response(200, body, content)))
    assert events[1].get("responseObject") == known


async def test_compressed_answers_are_read():
    body = orjson.dumps({"kind": "A", "items": ["x" * 200_000]})
    for answer in (
        Response(200, gzip.compress(body), headers=[(b"content-encoding", b"gzip")]),
        Response(200, parts=iter([body[:9], body[9:]]), length=len(body)),
    ):
        _, events = await run(answering(answer))
        assert events[1]["responseObject"] == orjson.loads(body)


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
    assert response.body == b'Internal Server Error: "/api/v1/namespaces/a/pods": failed to store audit event\n'
    assert done == []


async def test_refusals_are_noted_without_a_user():
    sink = Sink()
    auditing = Auditing(parse_policy((HEAD + "- {level: Metadata}\n").encode()), sink)
    body = orjson.dumps(errors.unauthorized("Unauthorized").status)
    await auditing.note_refusal(make(), Response(401, body))
    (event,) = sink.events
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"]["reason"] == "Unauthorized"


class Taken(Upgraded):
    """A protocol that remembers what it was told."""

    def __init__(self):
        self.told = []

    def connection_made(self, transport):
        self.told.append(("made", transport))

    def data_received(self, data):
        self.told.append(("data", data))

    def eof_received(self):
        self.told.append(("eof",))
        return True

    def connection_lost(self, exc):
        self.told.append(("lost", exc))

    def drain_server(self):
        self.told.append(("drain",))


async def test_a_connection_that_was_taken_over_ends_when_it_is_lost():
    taken, sink = Taken(), Sink()
    auditing = Auditing(parse_policy((HEAD + "- {level: Metadata}\n").encode()), sink)
    request = make(target="/api/v1/namespaces/a/pods/b/exec")
    answer = Response(101, upgrade=lambda transport, leftover: taken)
    response = await with_audit(answering(answer), auditing)(request)
    stages = [event["stage"] for event in sink.events]
    assert (stages, sink.events[1]["responseStatus"]["code"]) == (["RequestReceived", "ResponseStarted"], 101)
    observed = response.upgrade(None, b"")
    observed.connection_made("transport")
    observed.data_received(b"x")
    assert observed.eof_received() is True
    observed.drain_server()
    assert len(sink.events) == 2
    observed.connection_lost(None)
    await auditing.close()
    assert sink.events[-1]["stage"] == "ResponseComplete"
    assert taken.told == [("made", "transport"), ("data", b"x"), ("eof",), ("drain",), ("lost", None)]


async def test_the_head_of_a_watch_is_all_there_is():
    async def stream(writer):
        raise AssertionError("not to be called")

    request = make("HEAD", "/api/v1/pods?watch=1")
    _, events = await run(answering(Response(200, stream=stream)), request)
    assert events[-1]["stage"] == "ResponseComplete"


async def test_a_watch_that_never_began_has_both_stages():
    async def fail(request):
        raise ClientDisconnected("gone")

    _, events = await run(fail, make(target="/api/v1/pods?watch=1"))
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


async def test_events_and_levels_are_counted():
    auditing = Auditing(parse_policy((HEAD + "- {level: None, verbs: [get]}\n- {level: Metadata}\n").encode()), Sink())
    handler = with_audit(answering(Response(200)), auditing)
    await handler(make())
    await handler(make(target="/api/v1/namespaces/a/pods/b"))
    auditing.sink.answer = False
    await handler(make())
    page = render(auditing.metrics.instruments()).decode().splitlines()
    assert [line for line in page if not line.startswith("#")] == [
        "apiserver_audit_event_total 3",
        'apiserver_audit_level_total{level="Metadata"} 2',
        'apiserver_audit_level_total{level="None"} 1',
        "apiserver_audit_requests_rejected_total 1",
    ]
