"""The audit log and the audit webhook of a running server."""

from __future__ import annotations

import orjson
from websocket import create_connection

from pilothouse.testing.waiting import until

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/version"]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: "", resources: [configmaps]}]
- level: Metadata
  namespaces: [audit-meta]
"""
MAPS = "/api/v1/namespaces/default/configmaps"


def events_of(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def start(host, tmp_path, *flags):
    policy, log = tmp_path / "policy.yaml", tmp_path / "logs" / "audit.log"
    policy.write_text(POLICY)
    server = host(tmp_path / "data", f"--audit-policy-file={policy}", f"--audit-log-path={log}", *flags)
    return server, log


def test_levels_stages_and_annotations(host, tmp_path):
    server, log = start(host, tmp_path)
    server.call("GET", "/version")
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    server.call("POST", "/api/v1/namespaces/default/secrets", secret, {"Audit-ID": "mine"})
    server.call("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}}, {"X-Forwarded-For": "192.0.2.7, x"})
    server.call("PATCH", f"{MAPS}/m", b'{"data":{"a":"c"}}', {"Content-Type": "application/merge-patch+json"})
    server.call("PUT", f"{MAPS}/m", {"metadata": {"name": "another"}})
    server.call("DELETE", f"{MAPS}/m", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    server.call("GET", "/api/v1/namespaces/audit-meta/pods", headers={"Impersonate-User": "jane"})
    server.call("GET", "/api/v1/namespaces/audit-none/pods")
    events = [event for event in events_of(log) if event["user"].get("username") == "kubernetes-admin"]
    assert b"hunter2" not in log.read_bytes()
    secret, created, patched, misnamed, deleted, refused = events
    assert {event["stage"] for event in events} == {"ResponseComplete"}
    assert (secret["level"], secret["auditID"], secret["objectRef"]["name"]) == ("Metadata", "mine", "s")
    assert "requestObject" not in secret
    assert created["sourceIPs"] == ["192.0.2.7", "127.0.0.1"]
    assert created["requestObject"]["data"] == {"a": "b"}
    assert created["responseObject"]["metadata"]["uid"]
    assert "managedFields" not in created["responseObject"]["metadata"]
    assert created["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert patched["requestObject"] == {"data": {"a": "c"}}
    assert misnamed["responseStatus"]["code"] == 400
    assert misnamed["requestObject"]["metadata"] == {"name": "another"}
    assert deleted["requestObject"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/__internal",
        "gracePeriodSeconds": 0,
    }
    assert deleted["responseStatus"]["status"] == "Success"
    assert refused["impersonatedUser"] == {"username": "jane", "groups": ["system:authenticated"]}
    assert (refused["responseStatus"]["code"], refused["responseStatus"]["reason"]) == (403, "Forbidden")
    assert refused["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_watches_have_a_start_and_an_end(host, tmp_path):
    server, log = start(host, tmp_path)
    server.call("GET", f"{MAPS}?watch=1&timeoutSeconds=1")

    def stages():
        return [event["stage"] for event in events_of(log) if event["verb"] == "watch"]

    until(lambda: stages() == ["ResponseStarted", "ResponseComplete"])


def test_watches_over_websockets_end_with_their_connection(host, tmp_path):
    server, log = start(host, tmp_path)

    def stages():
        return [event["stage"] for event in events_of(log) if event["verb"] == "watch"]

    url = server.url.replace("https", "wss") + f"{MAPS}?watch=1"
    socket = create_connection(url, sslopt={"context": server.tls()}, timeout=120)
    assert stages() == ["ResponseStarted"]
    socket.close()
    until(lambda: stages() == ["ResponseStarted", "ResponseComplete"])
    assert {event["responseStatus"]["code"] for event in events_of(log) if event["verb"] == "watch"} == {101}


def test_large_compressed_answers_are_written_down(host, tmp_path):
    server, log = start(host, tmp_path)
    for number in range(2):
        server.call("POST", MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 100_000}})
    code, headers, _ = server.call("GET", MAPS, headers={"Accept-Encoding": "gzip", "Accept": "application/yaml"})
    assert (code, headers["content-encoding"]) == (200, "gzip")
    listed = [event for event in events_of(log) if event["verb"] == "list" and event["objectRef"]["namespace"]]
    names = {item["metadata"]["name"] for item in listed[-1]["responseObject"]["items"]}
    assert {"large-0", "large-1"} <= names


def test_refused_tokens_are_written_down_without_the_token(host, tmp_path):
    server, log = start(host, tmp_path)
    path = "/api/v1/namespaces/default/configmaps"
    connection_headers = {"Authorization": "Bearer wrong-token"}
    from http.client import HTTPSConnection
    from ssl import create_default_context

    context = create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    connection = HTTPSConnection("127.0.0.1", server.port, context=context)
    connection.request("GET", path, headers=connection_headers)
    assert connection.getresponse().status == 401
    connection.close()
    (event,) = [event for event in events_of(log) if event["requestURI"] == path]
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 401)
    assert b"wrong-token" not in log.read_bytes()


def test_webhook_gets_batches_again_after_failures(host, start_peer, tmp_path):
    answers = iter([500, 503])
    peer = start_peer(lambda path, body: (next(answers, 200), {}))
    config = peer.kubeconfig(tmp_path / "webhook.kubeconfig", "/events")
    server, log = start(
        host,
        tmp_path,
        f"--audit-webhook-config-file={config}",
        "--audit-webhook-batch-max-wait=100ms",
        "--audit-webhook-initial-backoff=50ms",
        "--audit-log-mode=batch",
        "--audit-log-batch-max-size=10",
        "--audit-log-batch-max-wait=10ms",
    )
    server.call("POST", MAPS, {"metadata": {"name": "m"}})

    def received(name):
        items = [item for _, body in peer.requests for item in body["items"]]
        return any(item["objectRef"].get("name") == name for item in items)

    until(lambda: received("m") and len(peer.requests) > 2)
    assert peer.requests[0][1]["kind"] == "EventList"
    until(lambda: any(event["objectRef"].get("name") == "m" for event in events_of(log)))


def test_large_events_lose_their_objects(host, tmp_path):
    server, log = start(host, tmp_path, "--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size=3000")
    server.call("POST", MAPS, {"metadata": {"name": "large"}, "data": {"a": "x" * 10_000}})
    (event,) = [event for event in events_of(log) if event["objectRef"].get("name") == "large"]
    assert event["annotations"]["audit.k8s.io/truncated"] == "true"
    assert "requestObject" not in event


def test_legacy_format(host, tmp_path):
    server, log = start(host, tmp_path, "--audit-log-format=legacy")
    server.call("POST", MAPS, {"metadata": {"name": "m"}})
    line = next(line for line in log.read_text().splitlines() if 'user="kubernetes-admin"' in line)
    assert ' AUDIT: id="' in line
    assert 'method="create"' in line
    assert line.endswith('namespace="default" uri="/api/v1/namespaces/default/configmaps" response="201"')
