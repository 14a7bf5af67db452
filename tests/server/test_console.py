"""The console's routes: what anybody gets, who may look at what, and what is told of requests."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.conftest import start_server, stop_server

from pilothouse.cli.console import NoConsole, sign_in
from pilothouse.cli.main import main
from pilothouse.testing.calling import Caller
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.users import Users
from pilothouse.testing.waiting import PATIENCE_SECONDS, wait

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def eventually(is_so: Callable[[], object], what: str) -> None:
    wait(lambda: (bool(is_so()), ""), what, PATIENCE_SECONDS, str)


@pytest.fixture(scope="module")
def console() -> Iterator[InProcessServer]:
    with InProcessServer("--console") as running:
        yield running


def nobody(server: InProcessServer) -> Caller:
    return Caller(server.url, ssl.create_default_context(cafile=str(server.pki.ca_cert)))


def signed_in(server: InProcessServer) -> Caller:
    """The administrator by a session."""
    ticket = server.call("POST", "/console/tickets").json["ticket"]
    anybody = nobody(server)
    answer = anybody.call("POST", "/console/login", ticket)
    assert answer.status == 200, answer.body
    return Caller(server.url, anybody.context, answer.json["token"])


@pytest.fixture(scope="module")
def users(console: InProcessServer) -> Iterator[Users]:
    made = Users(console)
    yield made
    made.close()


def somebody(console: InProcessServer, users: Users, name: str, **rule: list[str]) -> Caller:
    token = users.service_account(name, rules=[rule] if rule else []).token
    return Caller(console.url, nobody(console).context, token)


@pytest.mark.parametrize("path", ["/console/", "/console/main.js", "/console/console.css", "/console/icon.svg"])
def test_anybody_gets_the_page_with_a_strict_policy(console: InProcessServer, path: str) -> None:
    answer = nobody(console).call("GET", path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = nobody(console).call("GET", path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_other_paths_and_methods(console: InProcessServer) -> None:
    anybody = nobody(console)
    answer = anybody.call("GET", "/console")
    assert (answer.status, answer.headers["location"]) == (301, "/console/")
    assert anybody.call("GET", "/console/nothing").status == 404
    assert anybody.call("GET", "/console/../pki/ca.key").status == 404
    assert anybody.call("POST", "/console/").status == 405
    assert anybody.call("GET", "/console/login").status == 405
    assert anybody.call("GET", "/consoles").status == 403  # no path of ours: the API's filters decide


def test_without_the_flag_there_is_none() -> None:
    with InProcessServer() as bare:
        assert bare.call("GET", "/console/").status == 404
        assert nobody(bare).call("GET", "/console/").status == 403
        with pytest.raises(NoConsole, match="--console"):
            sign_in(bare.data_dir)


def test_signing_in_and_out(console: InProcessServer) -> None:
    anybody = nobody(console)
    assert anybody.call("POST", "/console/login", "not-a-ticket").status == 401
    assert anybody.call("POST", "/console/login", "x" * 5000).status == 401
    admin = signed_in(console)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = admin.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review).json["status"]["userInfo"]
    assert found["username"] == "kubernetes-admin" and "system:authenticated" in found["groups"]
    leaving = signed_in(console)
    assert leaving.call("POST", "/console/logout").status == 200
    assert leaving.call("GET", "/api/v1/nodes").status == 401


def test_tickets_are_for_those_who_may_have_them(console: InProcessServer, users: Users) -> None:
    assert nobody(console).call("POST", "/console/tickets").status == 403
    assert somebody(console, users, "ann").call("POST", "/console/tickets").status == 403
    path = "/console/tickets"
    bob = somebody(console, users, "bob", nonResourceURLs=[path], verbs=["post"])
    eventually(lambda: bob.call("POST", path).status == 201, "the binding to be known")
    assert console.call("GET", "/console/tickets").status == 405


def test_the_command_prints_where_to_go(console: InProcessServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", f"--data-dir={console.data_dir}"], "pilothouse") == 0
    url = capsys.readouterr().out.strip()
    assert url.startswith(f"{console.url}/console/#ticket=")
    assert nobody(console).call("POST", "/console/login", url.partition("=")[2]).status == 200


def test_the_command_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", f"--data-dir={tmp_path}"], "pilothouse") == 1
    assert "no server runs" in capsys.readouterr().err


def test_history_of_an_object(console: InProcessServer) -> None:
    made = {"metadata": {"name": "past"}, "data": {"key": "first"}}
    assert console.call("POST", f"{CONFIG_MAPS}?fieldManager=maker", made).status == 201
    for value in ("second", "third"):
        patch = {"Content-Type": "application/merge-patch+json", "User-Agent": "changer/1"}
        assert console.call("PATCH", f"{CONFIG_MAPS}/past", {"data": {"key": value}}, patch).status == 200
    found = console.call("GET", f"/console/history{CONFIG_MAPS}/past").json
    versions = found["versions"]
    assert [each["yaml"].split("key: ")[1].split()[0] for each in versions] == ["third", "second", "first"]
    assert found["end"] == "created"
    assert versions[-1]["by"] == ["maker"] and versions[0]["by"] == ["changer"]
    assert "managedFields" not in versions[0]["yaml"]
    older = console.call("GET", f"/console/history{CONFIG_MAPS}/past?before={versions[0]['resourceVersion']}").json
    assert older["versions"] == versions[1:]


def test_history_in_pages_and_from_the_present_life_only(console: InProcessServer) -> None:
    console.call("POST", CONFIG_MAPS, {"metadata": {"name": "twice"}})
    console.call("DELETE", f"{CONFIG_MAPS}/twice")
    console.call("POST", CONFIG_MAPS, {"metadata": {"name": "twice"}})
    for number in range(25):
        patch = {"Content-Type": "application/merge-patch+json"}
        console.call("PATCH", f"{CONFIG_MAPS}/twice", {"data": {"n": str(number)}}, patch)
    first = console.call("GET", f"/console/history{CONFIG_MAPS}/twice").json
    assert (len(first["versions"]), first["end"]) == (20, "")
    rest = console.call(
        "GET", f"/console/history{CONFIG_MAPS}/twice?before={first['versions'][-1]['resourceVersion']}"
    ).json
    assert (len(rest["versions"]), rest["end"]) == (6, "created")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{CONFIG_MAPS}/missing", 404),
        ("/api/v1/configmaps/kube-root-ca.crt", 404),
        ("/api/v1/namespaces/default/namespaces/kube-system", 404),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles/admin", 404),
        ("/api/v1/watch/namespaces/default", 404),
        (f"{CONFIG_MAPS}/../secrets/x", 404),
        (f"{CONFIG_MAPS}/a%2Fb", 404),
        (CONFIG_MAPS, 404),
        ("/api/v1/namespaces/default/pods/x/log", 404),
        ("/version", 404),
        ("/apis/nothing.example/v1/things/x", 404),
        (f"{CONFIG_MAPS}/kube-root-ca.crt?before=x", 400),
        (f"{CONFIG_MAPS}/kube-root-ca.crt?before=999999999", 400),
    ],
)
def test_history_of_what_has_none(console: InProcessServer, path: str, status: int) -> None:
    assert console.call("GET", f"/console/history{path}").status == status


def test_rights_in_a_namespace_are_none_to_the_history_of_what_is_in_none(
    console: InProcessServer, users: Users
) -> None:
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    token = users.service_account("local", rules=[rule], namespace="default").token
    local = Caller(console.url, nobody(console).context, token)
    eventually(lambda: local.call("GET", CONFIG_MAPS).status == 200, "the binding to be known")
    role = "clusterroles/cluster-admin"
    assert local.call("GET", f"/console/history/apis/rbac.authorization.k8s.io/v1/{role}").status == 403
    inside = f"/console/history/apis/rbac.authorization.k8s.io/v1/namespaces/default/{role}"
    assert local.call("GET", inside).status == 404
    assert console.call("GET", f"/console/history/apis/rbac.authorization.k8s.io/v1/{role}").status == 200


def test_history_is_for_those_who_may_get_the_object(console: InProcessServer, users: Users) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    console.call("POST", secrets, {"metadata": {"name": "mine"}})
    console.call("POST", secrets, {"metadata": {"name": "other"}})
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["mine"]}
    reader = somebody(console, users, "reader", **rule)
    eventually(lambda: reader.call("GET", f"{secrets}/mine").status == 200, "the binding to be known")
    assert reader.call("GET", f"/console/history{secrets}/mine").status == 200
    refused = reader.call("GET", f"/console/history{secrets}/other")
    assert refused.status == 403
    assert 'cannot get resource "secrets"' in refused.json["message"]
    assert nobody(console).call("GET", f"/console/history{secrets}/mine").status == 403


@contextmanager
def stream(caller: Caller) -> Iterator[Iterator[Any]]:
    """The lines that somebody who looks at requests is told."""
    where = urlsplit(caller.url)
    connection = HTTPSConnection(where.hostname or "", where.port, timeout=60, context=caller.context)
    headers = {"Authorization": f"Bearer {caller.token}"} if caller.token else {}
    connection.request("GET", "/console/requests", headers=headers)
    answer = connection.getresponse()
    try:
        assert answer.status == 200, answer.read()
        yield (json.loads(line) for line in answer)
    finally:
        answer.close()
        connection.close()


def test_requests_are_told_while_they_happen(console: InProcessServer) -> None:
    with stream(Caller(console.url, console.ssl_context())) as lines:
        vitals = next(lines)["vitals"]
        assert vitals["store"]["bytes"] > 0 and vitals["store"]["revision"] > 1
        assert {"global-default", "workload-high"} <= {level["name"] for level in vitals["levels"]}
        secret = {"metadata": {"name": "seen"}, "stringData": {"password": "hunter2"}}
        console.call("POST", "/api/v1/namespaces/default/secrets?fieldManager=me", secret, {"X-Token": "hunter2"})
        records = (record for line in lines for record in line.get("requests", ()))
        record = next(each for each in records if each["resource"] == "secrets")
    assert (record["verb"], record["code"], record["user"]) == ("create", 201, "kubernetes-admin")
    assert (record["server"], record["level"], record["query"]) == ("kube-apiserver", "exempt", "fieldManager=me")
    names = [name for name, _ in record["filters"]]
    assert names[-1] == "handler" and {"authentication", "authorization"} <= set(names)
    steps = {kind: {name for _, of, name, *_ in record["steps"] if of == kind} for kind in ("", "admission", "storage")}
    assert steps[""] == {"Create"} and "Create sqlite" in steps["storage"]
    assert {"NamespaceLifecycle", "ResourceQuota"} <= steps["admission"]
    assert "hunter2" not in json.dumps(record)
    seen = console.process.cluster.console
    assert seen is not None
    recorder = seen.recorder
    eventually(lambda: not recorder.viewers, "recording to end with its viewer")


def test_watches_are_told_with_whose_they_are_and_what_waits(console: InProcessServer) -> None:
    watching = HTTPSConnection("127.0.0.1", console.port, timeout=60, context=console.ssl_context())
    watching.request("GET", f"{CONFIG_MAPS}?watch=true")
    assert watching.getresponse().status == 200
    with stream(Caller(console.url, console.ssl_context())) as lines:
        vitals = (line["vitals"] for line in lines if "vitals" in line)
        found = next(watches for each in vitals if (watches := each["watches"]))
    watching.close()
    assert {"what": "configmaps/default", "client": "kubernetes-admin", "waiting": 0, "live": True} in found


def test_requests_are_for_those_who_may(console: InProcessServer, users: Users) -> None:
    path = "/console/requests"
    assert nobody(console).call("GET", path).status == 403
    assert somebody(console, users, "carl").call("GET", path).status == 403
    looker = somebody(console, users, "looker", nonResourceURLs=[path], verbs=["get"])
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": path, "verb": "get"}},
    }
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    eventually(lambda: looker.call("POST", reviews, review).json["status"]["allowed"], "the binding to be known")
    with stream(looker) as lines:
        assert "vitals" in next(lines)


def test_a_server_stops_under_the_eyes_of_a_viewer() -> None:
    with InProcessServer("--console") as server, stream(Caller(server.url, server.ssl_context())) as lines:
        next(lines)


def test_several_processes_are_one_console(tmp_path: Path) -> None:
    """Whichever of them a connection reaches: sessions are known to all, and a viewer sees the requests of all."""
    server = start_server(tmp_path / "data", "--console", "--workers=2")
    try:
        context = server.tls()
        trusting = ssl.create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
        for _ in range(3):
            ticket = Caller(server.url, context).call("POST", "/console/tickets").json["ticket"]
            token = Caller(server.url, trusting).call("POST", "/console/login", ticket).json["token"]
            assert Caller(server.url, trusting).call("POST", "/console/login", ticket).status == 401
            for _ in range(3):
                assert Caller(server.url, trusting, token).call("GET", "/api/v1/nodes").status == 200
        lines_to = [HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context) for _ in range(4)]
        with stream(Caller(server.url, context)) as lines:
            both = (line["vitals"] for line in lines if line.get("vitals", {}).get("processes") == 2)
            assert next(both)["store"]["bytes"] > 0
            for number, line in enumerate(lines_to):  # connections go to whoever has fewest: some to each
                line.request("GET", f"/api/v1/namespaces/default/configmaps/x{number}")
                line.getresponse().read()
            records = (record for line in lines for record in line.get("requests", ()))
            names = (record["name"] for record in records if record["resource"] == "configmaps")
            assert {next(names) for _ in lines_to} == {"x0", "x1", "x2", "x3"}
        for line in lines_to:
            line.close()
    finally:
        stop_server(server)
