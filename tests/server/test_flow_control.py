"""Priority and fairness of a whole server: configured by stored objects, shown in headers, dumps and metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilothouse.testing.in_process import Answer, InProcessServer

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
ANN = {"Impersonate-User": "ann", "Impersonate-Group": "system:authenticated"}
SCHEMA, LEVEL = "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        yield server


def until(server: InProcessServer, path: str, holds: str) -> Answer:
    """Ask as ann until the answer comes by way of a schema: configuration is taken in soon, not at once."""
    uid = server.call("GET", f"{GROUP}/flowschemas/{holds}").json["metadata"]["uid"]
    for _ in range(1000):
        answer = server.call("GET", path, headers=ANN)
        if answer.headers[SCHEMA] == uid:
            return answer
    raise AssertionError(f"{holds} is not in use")


def test_headers_name_schema_and_level(server: InProcessServer) -> None:
    answer = server.call("GET", "/api/v1/namespaces/default")
    exempt = server.call("GET", f"{GROUP}/prioritylevelconfigurations/exempt")
    assert answer.headers[LEVEL] == exempt.json["metadata"]["uid"]
    assert SCHEMA in server.call("GET", "/api/v1/pods", headers=ANN).headers  # 403 comes after
    assert SCHEMA in server.call("GET", "/nothing/here").headers


def test_stored_objects_are_taken_into_use(server: InProcessServer) -> None:
    queuing = {"queues": 1, "handSize": 1, "queueLengthLimit": 5}
    limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0}
    limited["limitResponse"] = {"type": "Queue", "queuing": queuing}  # type: ignore[assignment]
    level = {"metadata": {"name": "none"}, "spec": {"type": "Limited", "limited": limited}}
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "ann"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/version"]}],
    }
    schema = {
        "metadata": {"name": "none"},
        "spec": {"priorityLevelConfiguration": {"name": "none"}, "matchingPrecedence": 3, "rules": [rule]},
    }
    assert server.call("POST", f"{GROUP}/prioritylevelconfigurations", level).status == 201
    assert server.call("POST", f"{GROUP}/flowschemas", schema).status == 201
    refused = until(server, "/version?timeout=800ms", "none")
    assert (refused.status, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"
    assert server.call("GET", "/version").status == 200
    page = server.call("GET", "/metrics").body.decode()
    labels = '{priority_level="none",flow_schema="none",reason="time-out"}'
    assert f"apiserver_flowcontrol_rejected_requests_total{labels}" in page
    assert server.call("DELETE", f"{GROUP}/flowschemas/none").status == 200
    until(server, "/version", "global-default")


def test_dumps(server: InProcessServer) -> None:
    levels = server.call("GET", "/debug/api_priority_and_fairness/dump_priority_levels")
    assert levels.headers["content-type"] == "text/plain; charset=utf-8"
    assert levels.body.startswith(b"PriorityLevelName, ")
    requests = server.call("GET", "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1").body
    assert requests.count(b"\n") == 2
    assert b"/debug/api_priority_and_fairness/dump_requests" in requests
    assert server.call("GET", "/debug/api_priority_and_fairness/dump_queues").body.count(b"workload-low,") == 128


def test_switched_off() -> None:
    with InProcessServer("--enable-priority-and-fairness=false", "--max-requests-inflight=5") as server:
        answer = server.call("GET", "/api/v1/namespaces/default")
        assert SCHEMA not in answer.headers
        assert server.call("GET", "/debug/api_priority_and_fairness/dump_queues").status == 404
        assert b"max-in-flight-filter ok" in server.call("GET", "/readyz?verbose").body
