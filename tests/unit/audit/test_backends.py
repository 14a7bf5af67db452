import asyncio
import threading

import orjson
import pytest

from pilothouse.audit.events import Event, Record
from pilothouse.audit.log import LogSink
from pilothouse.audit.policy import METADATA, Verdict
from pilothouse.audit.webhook import SendFailed, WebhookSink
from pilothouse.machinery.user import User


class Lines:
    def __init__(self, error=None):
        self.written = []
        self.error = error

    def write(self, data):
        if self.error:
            raise self.error
        self.written.append(data)

    def close(self):
        self.written.append(b"closed")


async def test_log_writes_a_line_an_event():
    lines = Lines()
    sink = LogSink(lines)
    assert await sink.process([Record(b'{"a":1}'), Record(b'{"a":2}')])
    first, second = b"".join(lines.written).splitlines(keepends=True)
    assert first == b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","a":1}\n'
    assert orjson.loads(second)["a"] == 2
    await sink.close()
    assert lines.written[-1] == b"closed"


async def test_log_in_a_thread_writes_batches_at_once():
    lines = Lines()
    assert await LogSink(lines).process([Record(b"{1}"), Record(b"{2}")])
    assert len(lines.written) == 1


class Stuck(Lines):
    """Takes nothing until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, data):
        self.begun.set()
        self.go_on.wait()
        super().write(data)


async def test_only_those_who_are_written_down_wait_for_a_log_that_hangs():
    lines = Stuck()
    sink = LogSink(lines)
    first = asyncio.create_task(sink.process([Record(b"{1}")]))
    await asyncio.to_thread(lines.begun.wait)
    others = [asyncio.create_task(sink.process([Record(b"{%d}" % number)])) for number in range(2, 5)]
    await asyncio.sleep(0)
    others[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await others[1]
    lines.go_on.set()
    assert await asyncio.gather(first, others[0], others[2]) == [True] * 3
    assert b"".join(lines.written).count(b"\n") == 3
    assert len(lines.written) == 2


async def test_what_waits_is_written_before_the_log_is_closed():
    lines = Stuck()
    sink = LogSink(lines)
    task = asyncio.create_task(sink.process([Record(b"{1}")]))
    closing = asyncio.create_task(sink.close())
    await asyncio.to_thread(lines.begun.wait)
    lines.go_on.set()
    assert await task
    await closing
    assert lines.written[-1] == b"closed"


async def test_a_log_that_fails_for_any_reason_takes_what_comes_after():
    lines = Lines(ValueError("I/O operation on closed file"))
    sink = LogSink(lines)
    assert not await sink.process([Record(b"{1}")])
    lines.error = None
    assert await sink.process([Record(b"{1}")])


async def test_a_full_disk_is_a_failure(caplog):
    assert await LogSink(Lines(OSError("no space left"))).process([Record(b"{}")]) is False
    assert "no space left" in caplog.text


async def test_legacy_lines(make_request):
    lines = Lines()
    request = make_request(user_agent='a"b')
    event = Event(request, Verdict(METADATA), request.user)
    sink = LogSink(lines, "legacy")
    await sink.process([event.record("RequestReceived")])
    event.note_impersonation(User("joe", groups=("x", "y")), "")
    event.note_response(200, None)
    await sink.process([event.record("ResponseComplete")])
    first, second = (line.decode().split(" ", 1)[1] for line in lines.written)
    assert first == (
        'AUDIT: id="id" stage="RequestReceived" ip="192.0.2.1" method="list" user="jane" groups="\\"devs\\"" '
        'as="<self>" asgroups="<lookup>" user-agent="a\\"b" namespace="a" uri="/api/v1/namespaces/a/pods" '
        'response="<deferred>"\n'
    )
    assert 'as="joe" asgroups="\\"x\\",\\"y\\""' in second
    assert second.endswith('response="200"\n')


async def test_webhook_tries_again_with_growing_pauses():
    sent, pauses = [], []

    async def send(body):
        sent.append(orjson.loads(body))
        if len(sent) < 3:
            raise SendFailed("no")

    async def sleep(seconds):
        pauses.append(seconds)

    sink = WebhookSink(send, 10.0, sleep, lambda: 0.0)
    assert await sink.process([Record(b'{"a":1}'), Record(b'{"a":2}')])
    assert pauses == [10.0, 15.0]
    assert sent[-1] == {
        "kind": "EventList",
        "apiVersion": "audit.k8s.io/v1",
        "metadata": {},
        "items": [{"a": 1}, {"a": 2}],
    }


async def test_webhook_gives_up_after_five_attempts(caplog):
    attempts = []

    async def send(body):
        attempts.append(body)
        raise SendFailed("still no")

    async def sleep(seconds):
        pass

    assert await WebhookSink(send, 1.0, sleep).process([Record(b"{}")]) is False
    assert len(attempts) == 5
    assert "still no" in caplog.text
