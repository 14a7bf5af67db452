import time
import tracemalloc

import orjson
import pytest

from pilothouse.audit.events import Event, Record, micro_time, without_managed_fields
from pilothouse.audit.policy import METADATA, REQUEST, REQUEST_RESPONSE, Verdict
from pilothouse.machinery.user import User


def decoded(event, stage="ResponseComplete"):
    return orjson.loads(event.record(stage).line)


def test_metadata_event(make_request):
    request = make_request(user_agent="kubectl/1.37")
    event = Event(request, Verdict(METADATA), request.user)
    event.note_object({"metadata": {"name": "p", "uid": "u"}, "data": "hidden"})
    event.annotate("k", "first")
    event.annotate("k", "second")
    event.note_response(201, None)
    found = decoded(event)
    times = [found.pop("requestReceivedTimestamp"), found.pop("stageTimestamp")]
    assert times == sorted(times)
    assert found == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "id",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/a/pods",
        "verb": "list",
        "user": {"username": "jane", "uid": "7", "groups": ["devs"]},
        "sourceIPs": ["192.0.2.1"],
        "userAgent": "kubectl/1.37",
        "objectRef": {"resource": "pods", "namespace": "a", "name": "p", "uid": "u", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"k": "first"},
    }


def test_objects_are_kept_as_they_were(make_request):
    request = make_request("POST")
    event = Event(request, Verdict(REQUEST_RESPONSE), request.user)
    obj = {"kind": "Pod", "metadata": {"name": "p"}}
    event.note_object(obj)
    obj["metadata"]["name"] = "changed"
    event.note_response(200, {"kind": "Pod", "metadata": {"name": "q"}})
    found = decoded(event)
    assert found["requestObject"]["metadata"] == {"name": "p"}
    assert found["responseObject"]["metadata"] == {"name": "q"}
    assert list(found).index("requestObject") < list(found).index("requestReceivedTimestamp")


def test_request_level_has_no_answer(make_request):
    event = Event(make_request("POST"), Verdict(REQUEST), None)
    event.note_object({"a": 1})
    event.note_response(200, {"kind": "Pod"})
    found = decoded(event)
    assert found["requestObject"] == {"a": 1}
    assert "responseObject" not in found
    assert found["user"] == {}


@pytest.mark.parametrize(
    ("patch", "kept"), [(b'{"a":1}', {"a": 1}), (b'[{"op":"add"}]', [{"op": "add"}]), (b"a: 1", "a: 1")]
)
def test_patches(make_request, patch, kept):
    event = Event(make_request("PATCH"), Verdict(REQUEST), None)
    event.note_patch(patch)
    assert decoded(event)["requestObject"] == kept


def test_a_status_becomes_the_response_status(make_request):
    event = Event(make_request("DELETE"), Verdict(METADATA), None)
    event.note_response(200, {"kind": "Status", "status": "Success", "details": {"name": "p"}, "metadata": {"x": 1}})
    assert decoded(event)["responseStatus"] == {
        "metadata": {},
        "status": "Success",
        "details": {"name": "p"},
        "code": 200,
    }


def test_an_answer_nobody_asked_for_in_this_form_leaves_its_code(make_request):
    event = Event(make_request(), Verdict(REQUEST_RESPONSE), None)
    event.overlook_answer()
    event.note_response(406, {"kind": "Status", "status": "Failure", "message": "m", "code": 406})
    found = decoded(event)
    assert found["responseStatus"] == {"metadata": {}, "code": 406}
    assert "responseObject" not in found


def test_details_without_content_stay(make_request):
    event = Event(make_request(), Verdict(METADATA), None)
    event.status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "details": {}}
    event.note_response(403, None)
    assert decoded(event)["responseStatus"]["details"] == {}


def test_impersonation(make_request):
    request = make_request()
    event = Event(request, Verdict(METADATA), request.user)
    event.note_impersonation(User("joe", groups=("g",)), "impersonate:user-info")
    found = decoded(event)
    assert found["user"]["username"] == "jane"
    assert found["impersonatedUser"] == {"username": "joe", "groups": ["g"]}
    assert found["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}


def test_earlier_records_do_not_change(make_request):
    event = Event(make_request(), Verdict(METADATA), None)
    first = event.record("RequestReceived")
    event.annotate("late", "x")
    event.note_response(200, None)
    found = orjson.loads(first.line)
    assert "annotations" not in found
    assert "responseStatus" not in found
    assert found["stageTimestamp"] == found["requestReceivedTimestamp"]


def test_shortening(make_request):
    event = Event(make_request("POST"), Verdict(REQUEST), None)
    event.note_object({"data": "x" * 1000})
    record = event.record("ResponseComplete")
    short = orjson.loads(record.shortened().line)
    assert record.size == len(record.line)
    assert "requestObject" not in short
    assert short["annotations"] == {"audit.k8s.io/truncated": "true"}
    assert Event(make_request(), Verdict(METADATA), None).record("x").shortened() is None


@pytest.mark.parametrize(
    ("forwarded", "real", "addresses"),
    [
        ("", "", ["192.0.2.1"]),
        ("10.0.0.1, 10.0.0.2", "", ["10.0.0.1", "10.0.0.2", "192.0.2.1"]),
        ("nonsense, 10.0.0.1", "", ["10.0.0.1", "192.0.2.1"]),
        ("10.0.0.1", "10.0.0.1", ["10.0.0.1", "192.0.2.1"]),
        ("10.0.0.1", "10.0.0.9", ["10.0.0.1", "10.0.0.9", "192.0.2.1"]),
        ("10.0.0.1, 192.0.2.1", "", ["10.0.0.1", "192.0.2.1"]),
    ],
)
def test_source_addresses(make_request, forwarded, real, addresses):
    headers = {"x_forwarded_for": forwarded, "x_real_ip": real}
    request = make_request(**{name: value for name, value in headers.items() if value})
    assert decoded(Event(request, Verdict(METADATA), None))["sourceIPs"] == addresses


def test_a_socket_for_both_families_shows_plain_addresses(make_request):
    request = make_request(x_forwarded_for="::ffff:192.0.2.9")
    request.connection.peer = ("::ffff:192.0.2.1", 1)
    assert decoded(Event(request, Verdict(METADATA), None))["sourceIPs"] == ["192.0.2.9", "192.0.2.1"]


def test_a_request_was_received_before_anybody_asked_who_sent_it(make_request):
    request = make_request()
    request.received = 1_000_000.5
    assert decoded(Event(request, Verdict(METADATA), None))["requestReceivedTimestamp"] == "1970-01-12T13:46:40.500000Z"


def test_long_agents_are_cut(make_request):
    found = decoded(Event(make_request(user_agent="x" * 2000), Verdict(METADATA), None))
    assert found["userAgent"] == "x" * 1024 + "...TRUNCATED"


def test_managed_fields_go_everywhere():
    obj = {"metadata": {"name": "a", "managedFields": [1]}}
    assert without_managed_fields(obj) == {"metadata": {"name": "a"}}
    assert without_managed_fields({"items": [obj]}) == {"items": [{"metadata": {"name": "a"}}]}
    table = {"kind": "Table", "rows": [{"cells": [], "object": obj}, {"cells": []}]}
    assert without_managed_fields(table)["rows"] == [
        {"cells": [], "object": {"metadata": {"name": "a"}}},
        {"cells": []},
    ]
    assert obj["metadata"]["managedFields"] == [1]


def test_micro_time():
    assert micro_time(0.000001) == "1970-01-01T00:00:00.000001Z"
    assert micro_time(1_700_000_000.5) == "2023-11-14T22:13:20.500000Z"


def test_slow_requests_tell_what_took_long(make_request):
    request = make_request()
    request.received = time.time() - 2
    request.authentication_seconds = 0.0015
    event = Event(request, Verdict(METADATA), request.user)
    event.times |= {"authorization": 0.25, "mutating-webhook": 1.5, "validating-webhook": 0.0}
    assert "annotations" not in decoded(event, "ResponseStarted")
    found = decoded(event)["annotations"]
    prefix = "apiserver.latency.k8s.io/"
    assert found.pop(f"{prefix}total").startswith("2.")
    assert found == {
        f"{prefix}authentication": "1.5ms",
        f"{prefix}authorization": "250ms",
        f"{prefix}mutating-webhook": "1.5s",
    }
    request.received = time.time()
    assert "annotations" not in decoded(Event(request, Verdict(METADATA), request.user))


def test_a_long_event_is_copied_once_for_its_line():
    record = Record(b'{"a":"' + b"x" * 4_000_000 + b'"}')
    tracemalloc.start()
    try:
        line = record.line
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert orjson.loads(line) == {"kind": "Event", "apiVersion": "audit.k8s.io/v1", **orjson.loads(record.body)}
    assert line.endswith(b"\n")
    assert most < 1.5 * len(line)
