"""Every verb against a whole server: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from pilothouse.machinery.objects import Object
from pilothouse.testing.in_process import Answer, InProcessServer

MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
JSON = {"Content-Type": "application/json"}


class Maps:
    """The config maps of one namespace."""

    def __init__(self, server: InProcessServer, namespace: str) -> None:
        self.server = server
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"

    def __call__(self, method: str, rest: str = "", body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return self.server.call(method, self.path + rest, body, headers)

    def create(self, name: str, **more: Any) -> Object:
        answer = self("POST", "", config_map(name, **more))
        assert answer.status == 201, answer.body
        created: Object = answer.json
        return created

    def names(self, query: str = "") -> list[str]:
        return [item["metadata"]["name"] for item in self("GET", query).json["items"]]


def config_map(name: str, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more.pop("metadata", {})}, **more}


@pytest.fixture
def maps(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> Maps:
    return Maps(pilothouse_server, pilothouse_namespace)


# Create


def test_create_answers_with_the_object(maps: Maps) -> None:
    created = maps.create("a", data={"x": "1"})
    assert list(created) == ["kind", "apiVersion", "metadata", "data"]
    assert maps("GET", "/a").json == created


def test_create_from_yaml_and_answer_in_yaml(maps: Maps) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'y'}\n"
    headers = {"Content-Type": "application/yaml", "Accept": "application/yaml"}
    answer = maps("POST", "", body, headers)
    assert (answer.status, answer.headers["content-type"]) == (201, "application/yaml")
    assert yaml.safe_load(answer.body)["data"] == {"x": "y"}


def test_protobuf_there_and_back(maps: Maps) -> None:
    maps.create("a", data={"x": "1"})
    binary = {"Accept": "application/vnd.kubernetes.protobuf"}
    body = maps("GET", "/a", None, binary).body
    assert body.startswith(b"k8s\0")
    maps("DELETE", "/a")
    stripped = maps("POST", "", body, {"Content-Type": "application/vnd.kubernetes.protobuf"})
    assert stripped.status == 500, "it still has a resourceVersion"
    assert "resourceVersion should not be set" in stripped.json["message"]


@pytest.mark.parametrize(
    ("query", "body", "warning"),
    [
        ("", {"spec": {}}, '299 - "unknown field \\"spec\\""'),
        ("?fieldValidation=Ignore", {"spec": {}}, None),
        ("", {"metadata": {"label": {}}}, '299 - "unknown field \\"metadata.label\\""'),
    ],
)
def test_unknown_fields_are_warned_about(maps: Maps, query: str, body: Object, warning: str | None) -> None:
    answer = maps("POST", query, config_map("a", **body))
    assert (answer.status, answer.headers.get("warning")) == (201, warning)


def test_strict_decoding(maps: Maps) -> None:
    answer = maps("POST", "?fieldValidation=Strict", b'{"metadata":{"name":"a","name":"b"},"x":1}', JSON)
    assert answer.status == 400
    assert 'strict decoding error: duplicate field "metadata.name", unknown field "x"' in answer.json["message"]
    odd = maps("POST", "?fieldValidation=Perhaps", config_map("a"))
    assert (odd.status, odd.json["details"]["kind"]) == (422, "CreateOptions")


@pytest.mark.parametrize(
    ("query", "status"), [("?dryRun=All", 201), ("?dryRun=Some", 422), ("?fieldManager=" + "x" * 200, 422)]
)
def test_write_options(maps: Maps, query: str, status: int) -> None:
    assert maps("POST", query, config_map("a")).status == status
    assert maps.names() == []


# Read


def test_lists_pages_and_selectors(maps: Maps) -> None:
    for name in "abc":
        maps.create(name, metadata={"labels": {"first": str(name == "a").lower()}})
    page = maps("GET", "?limit=2").json
    assert page["metadata"]["remainingItemCount"] == 1
    rest = maps("GET", f"?limit=2&continue={page['metadata']['continue']}").json
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert maps.names("?labelSelector=first%3Dtrue") == ["a"]
    assert maps.names("?fieldSelector=metadata.name!%3Da") == ["b", "c"]
    assert maps("GET", "?labelSelector=a%20b").status == 400
    assert maps("GET", "?fieldSelector=spec.x%3D1").status == 400
    assert maps("GET", "?limit=x").status == 400


def test_tables_and_metadata(maps: Maps) -> None:
    maps.create("a", data={"x": "1"})
    table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    listed = maps("GET", "", None, table).json
    assert [column["name"] for column in listed["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in listed["rows"]] == [["a", 1]]
    assert listed["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert maps("GET", "?includeObject=Object", None, table).json["rows"][0]["object"]["data"] == {"x": "1"}
    assert maps("GET", "?includeObject=None", None, table).json["rows"][0]["object"] is None
    assert maps("GET", "?includeObject=x", None, table).status == 400
    partial = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    assert set(maps("GET", "/a", None, partial).json) == {"kind", "apiVersion", "metadata"}
    assert maps("GET", "", None, partial).status == 406


# Update and patch


def test_put(maps: Maps) -> None:
    created = maps.create("a", data={"x": "1"})
    changed = maps("PUT", "/a", {**created, "data": {"x": "2"}}).json
    assert int(changed["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert maps("PUT", "/a", {**created, "data": {"x": "3"}}).status == 409
    assert maps("PUT", "/b", created).status == 400
    assert maps("PUT", "/b", config_map("b")).status == 404
    other = config_map("a", metadata={"uid": "0f0f0f0f-0000-0000-0000-000000000000"})
    assert maps("PUT", "/a", other).status == 409


@pytest.mark.parametrize(
    ("patch", "headers", "data"),
    [
        ({"data": {"y": "2"}}, MERGE, {"x": "1", "y": "2"}),
        ({"data": {"x": None}}, MERGE, None),
        ({"data": {"y": "2"}}, STRATEGIC, {"x": "1", "y": "2"}),
        ({"data": {"$patch": "replace", "y": "2"}}, STRATEGIC, {"y": "2"}),
        ([{"op": "add", "path": "/data/y", "value": "2"}], JSON_PATCH, {"x": "1", "y": "2"}),
        ([{"op": "remove", "path": "/data"}], JSON_PATCH, None),
    ],
)
def test_patches(maps: Maps, patch: Any, headers: dict[str, str], data: Any) -> None:
    maps.create("a", data={"x": "1"})
    answer = maps("PATCH", "/a", patch, headers)
    assert answer.status == 200, answer.body
    assert answer.json.get("data") == data


@pytest.mark.parametrize(
    ("patch", "headers", "status"),
    [
        (b"{", MERGE, 400),
        (b"[]", MERGE, 400),
        (b"{}", JSON_PATCH, 400),
        ([{"op": "test", "path": "/data/x", "value": "2"}], JSON_PATCH, 422),
        ({"data": {"x": 5}}, MERGE, 422),
        ({"metadata": {"name": "b"}}, MERGE, 400),
        ({"metadata": {"resourceVersion": "1"}}, MERGE, 409),
        ({}, {"Content-Type": "text/plain"}, 415),
        ("a: [", APPLY, 422),
    ],
)
def test_patches_that_are_refused(maps: Maps, patch: Any, headers: dict[str, str], status: int) -> None:
    created = maps.create("a", data={"x": "1"})
    assert maps("PATCH", "/a", patch, headers).status == status
    assert maps("GET", "/a").json == created


def test_apply_creates_changes_and_conflicts(maps: Maps) -> None:
    wanted = json.dumps(config_map("a", data={"x": "1"}))
    assert maps("PATCH", "/a?fieldManager=one", wanted, APPLY).status == 201
    assert maps("PATCH", "/a?fieldManager=one", wanted, APPLY).status == 200
    other = json.dumps(config_map("a", data={"x": "2"}))
    refused = maps("PATCH", "/a?fieldManager=two", other, APPLY)
    assert refused.status == 409
    assert refused.json["details"]["causes"][0]["field"] == ".data.x"
    forced = maps("PATCH", "/a?fieldManager=two&force=true", other, APPLY)
    assert (forced.status, forced.json["data"]) == (200, {"x": "2"})
    assert maps("PATCH", "/a", wanted, APPLY).status == 422


def test_concurrent_patches_all_count(maps: Maps) -> None:
    maps.create("a")

    def patch(number: int) -> int:
        return maps("PATCH", "/a", {"data": {f"k{number}": "1"}}, MERGE).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(patch, range(24))) == {200}
    assert len(maps("GET", "/a").json["data"]) == 24


# Delete


def test_delete(maps: Maps) -> None:
    uid = maps.create("a")["metadata"]["uid"]
    status = maps("DELETE", "/a").json
    assert (status["status"], status["details"]["uid"]) == ("Success", uid)
    assert maps("DELETE", "/a").status == 404
    created = maps.create("a")
    wrong = {"preconditions": {"uid": uid}}
    assert maps("DELETE", "/a", wrong).status == 409
    assert maps("DELETE", "/a?dryRun=All").status == 200
    assert maps("GET", "/a").json == created
    assert maps("DELETE", "/a", b"null", JSON).status == 200


def test_delete_waits_for_finalizers(maps: Maps) -> None:
    maps.create("a", metadata={"finalizers": ["x.example/y"]})
    assert maps("DELETE", "/a").json["metadata"]["deletionTimestamp"]
    assert maps("GET", "/a").status == 200
    assert maps("PATCH", "/a", {"metadata": {"finalizers": None}}, MERGE).status == 200
    assert maps("GET", "/a").status == 404


def test_delete_collection(maps: Maps) -> None:
    for name in "abc":
        maps.create(name, metadata={"labels": {"go": str(name != "b").lower()}})
    gone = maps("DELETE", "?labelSelector=go%3Dtrue").json
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "c"]
    assert maps.names() == ["b"]


# Watch


def test_watch_from_a_list(maps: Maps) -> None:
    since = maps("GET").json["metadata"]["resourceVersion"]
    maps.create("a")
    maps("PATCH", "/a", {"data": {"x": "1"}}, MERGE)
    maps("DELETE", "/a")
    answer = maps("GET", f"?watch=1&timeoutSeconds=1&resourceVersion={since}")
    events = [json.loads(line) for line in answer.body.splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_streamed_list(maps: Maps) -> None:
    maps.create("a")
    query = (
        "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
    events = [json.loads(line) for line in maps("GET", query).body.splitlines()]
    assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


TEMPLATE = {"metadata": {}, "spec": {"containers": None}}
GENERATION = {"deprecated.daemonset.template.generation": "0"}


@pytest.mark.parametrize(
    ("resource", "annotations", "spec"),
    [
        ("deployments", {}, {"replicas": 0, "selector": None, "template": TEMPLATE, "strategy": {}}),
        ("replicasets", {}, {"replicas": 0, "selector": None, "template": TEMPLATE}),
        ("daemonsets", GENERATION, {"selector": None, "template": TEMPLATE, "updateStrategy": {}}),
    ],
)
def test_bookmarks_are_blank_objects(
    pilothouse_server: InProcessServer, resource: str, annotations: Object, spec: Object
) -> None:
    path = (
        f"/apis/apps/v1/namespaces/none/{resource}?watch=1&timeoutSeconds=1"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
    bookmark = json.loads(pilothouse_server.call("GET", path).body.splitlines()[0])["object"]
    assert bookmark["metadata"]["annotations"] == {**annotations, "k8s.io/initial-events-end": "true"}
    assert bookmark["spec"] == spec
    alone = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    bookmark = json.loads(pilothouse_server.call("GET", path, None, alone).body.splitlines()[0])["object"]
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?watch=1&resourceVersion=x", 500),
        ("?watch=1&sendInitialEvents=true", 422),
        ("?watch=1&resourceVersionMatch=Exact&resourceVersion=1", 422),
        ("?sendInitialEvents=true", 422),
    ],
)
def test_watches_that_are_refused(maps: Maps, query: str, status: int) -> None:
    assert maps("GET", query).status == status


# Everything else


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/apis/nothing.example/v1/things", 404),
        ("GET", "/apis/apps/v9/deployments", 404),
        ("GET", "/nothing", 404),
        ("POST", "/api/v1/pods", 405),
        ("PUT", "/api/v1/namespaces", 405),
        ("PATCH", "/api/v1/namespaces/default/pods", 405),
        ("HEAD", "/api/v1/namespaces", 405),
        ("POST", "/api/v1/namespaces/default/pods/x", 405),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("POST", "/version", 405),
    ],
)
def test_paths_and_methods(pilothouse_server: InProcessServer, method: str, path: str, status: int) -> None:
    assert pilothouse_server.call(method, path, {} if method in ("POST", "PUT", "PATCH") else None).status == status


def test_discovery_in_all_forms(pilothouse_server: InProcessServer) -> None:
    groups = {group["name"] for group in pilothouse_server.call("GET", "/apis").json["groups"]}
    assert {"apps", "batch", "apiextensions.k8s.io", "apiregistration.k8s.io"} <= groups
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    first = pilothouse_server.call("GET", "/apis", None, {"Accept": form})
    assert first.headers["content-type"] == form
    assert {item["metadata"]["name"] for item in first.json["items"]} == groups
    again = pilothouse_server.call("GET", "/apis", None, {"Accept": form, "If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    for group in groups:
        document = pilothouse_server.call("GET", f"/apis/{group}").json
        for version in document["versions"]:
            listed = pilothouse_server.call("GET", f"/apis/{version['groupVersion']}").json
            assert listed["groupVersion"] == version["groupVersion"]


@pytest.mark.parametrize("depth", [300, 1010, 2000, 20_000])
def test_deep_bodies_get_an_answer(maps: Maps, depth: int) -> None:
    maps.create("a")
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    requests = [
        ("POST", "", b'{"metadata":{"name":"b"},"x":%b}' % deep, JSON),
        ("PATCH", "/a", b'{"x":%b}' % deep, MERGE),
        ("PATCH", "/a", b'{"x":%b}' % deep, STRATEGIC),
        ("PATCH", "/a", b'[{"op":"add","path":"/data","value":%b}]' % deep, JSON_PATCH),
        ("DELETE", "/a?dryRun=All", deep, JSON),
    ]
    for method, path, body, headers in requests:
        answer = maps(method, path, body, headers)
        assert answer.status in (200, 201, 400, 422), (method, headers, answer.body)
        assert b"panic" not in answer.body


def test_errors_of_yaml_come_in_key_order(maps: Maps) -> None:
    body = b"kind: ConfigMap\nzz: 1\naa: 2\nmetadata: {name: a, q: 1, b: 2}\n"
    answer = maps("POST", "?fieldValidation=Strict", body, {"Content-Type": "application/yaml"})
    found = [part.split('"')[1] for part in answer.json["message"].partition("error: ")[2].split(", ")]
    assert found == ["aa", "metadata.b", "metadata.q", "zz"]


def test_a_hundred_thousand_unknown_fields(maps: Maps) -> None:
    body = {**config_map("a"), **{f"x{n}": 1 for n in range(100_000)}}
    answer = maps("POST", "?fieldValidation=Strict", body)
    assert (answer.status, answer.json["message"].count("unknown field")) == (400, 100)


# Options of writes


@pytest.mark.parametrize(
    ("method", "query", "headers", "status", "message"),
    [
        ("POST", "?dryRun=x&fieldValidation=y&fieldManager=%07", JSON, 422, [
            'CreateOptions.meta.k8s.io "" is invalid: [fieldManager: Invalid value',
            'dryRun: Unsupported value: ["x"]', 'fieldValidation: Unsupported value: "y"']),
        ("POST", "?dryRun=x", {"Content-Type": "text/plain"}, 415, ["unknown format"]),
        ("PUT", "/a?dryRun=x", {"Content-Type": "text/plain"}, 422, ["UpdateOptions.meta.k8s.io"]),
        ("PATCH", "/a?dryRun=x&force=true", MERGE, 422, [
            "[force: Forbidden: may not be specified for non-apply patch, dryRun: Unsupported value"]),
        ("PATCH", "/a?dryRun=x&force=true", APPLY, 422, [
            "[fieldManager: Required value: is required for apply patch, dryRun: Unsupported value"]),
    ],
)  # fmt: skip
def test_errors_of_options_are_told_together(
    maps: Maps, method: str, query: str, headers: dict[str, str], status: int, message: list[str]
) -> None:
    answer = maps(method, query, b"{", headers)
    assert answer.status == status
    for part in message:
        assert part in answer.json["message"]


def test_a_wrong_namespace_is_told_before_a_missing_one(pilothouse_server: InProcessServer) -> None:
    body = config_map("a", metadata={"namespace": "other"})
    answer = pilothouse_server.call("POST", "/api/v1/namespaces/missing/configmaps", body)
    assert answer.status == 400
    assert answer.json["message"].startswith("the namespace of the provided object does not match")


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}
SAME_OWNERS = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+"
SAME_OWNERS_LATE = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server"


def test_owners_are_kept_once(maps: Maps) -> None:
    owners = [OWNER, {**OWNER, "controller": True}, dict(reversed(OWNER.items()))]
    body = config_map("a", metadata={"ownerReferences": owners})
    answer = maps("POST", "", body)
    assert (answer.status, len(answer.json["metadata"]["ownerReferences"])) == (201, 2)
    assert SAME_OWNERS in answer.headers["warning"]
    assert answer.headers["warning"].endswith('duplicate UID(s) observed: u1"')
    answer = maps("PUT", "/a", body)
    assert SAME_OWNERS in answer.headers["warning"]
    patch = {"metadata": {"ownerReferences": [OWNER, OWNER]}}
    answer = maps("PATCH", "/a", patch, MERGE)
    assert answer.json["metadata"]["ownerReferences"] == [OWNER]
    assert SAME_OWNERS_LATE in answer.headers["warning"]


# Options of deletions


def test_preconditions_in_the_query(maps: Maps) -> None:
    created = maps.create("a")["metadata"]
    answer = maps("DELETE", "/a?uid=another")
    assert (answer.status, "the UID in the precondition (another)" in answer.json["message"]) == (409, True)
    assert maps("DELETE", "/a?resourceVersion=1").status == 409
    assert maps("DELETE", f"/a?uid={created['uid']}&resourceVersion={created['resourceVersion']}").status == 200


def test_a_held_object_is_accepted_for_deletion(maps: Maps) -> None:
    maps.create("a", metadata={"finalizers": ["example.com/hold"]})
    assert maps("DELETE", "/a").status == 200
    assert maps("DELETE", "/a?orphanDependents=false").status == 202
    assert maps("DELETE", "/a?orphanDependents=true").status == 200


IGNORING = "ignoreStoreReadErrorWithClusterBreakingPotential=true"


@pytest.mark.parametrize(
    ("rest", "status", "part"),
    [
        ("/a?gracePeriodSeconds=1&", 422, "Invalid value: true: cannot be set together with .gracePeriodSeconds"),
        ("/a?propagationPolicy=Orphan&uid=x&", 422, "with .propagationPolicy, ignoreStore"),
        ("/a?", 409, "unsafe deletion is not allowed because the object is decodable from storage"),
        ("/b?", 404, 'configmaps "b" not found'),
        ("?", 422, "is not allowed with DELETECOLLECTION, try again after removing the option"),
    ],
)
def test_deleting_what_cannot_be_read(maps: Maps, rest: str, status: int, part: str) -> None:
    maps.create("a")
    answer = maps("DELETE", rest + IGNORING)
    assert (answer.status, part in answer.json["message"]) == (status, True), answer.json
    assert maps("GET", "/a").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default",
        *(f"/apis/rbac.authorization.k8s.io/v1/{kind}/a" for kind in ("clusterroles", "clusterrolebindings")),
    ],
)
def test_kinds_that_must_be_read_to_be_deleted(pilothouse_server: InProcessServer, path: str) -> None:
    answer = pilothouse_server.call("DELETE", f"{path}?{IGNORING}", None, None)
    assert (answer.status, "no unsafe deleter provided" in answer.json["message"]) == (500, True)


def test_preconditions_name_events_by_their_first_group(maps: Maps, pilothouse_server: InProcessServer) -> None:
    path = "/api/v1/namespaces/default/events"
    event = {"metadata": {"name": "held"}, "involvedObject": {"namespace": "default"}}
    pilothouse_server.call("POST", path, event, None)
    path = path.replace("/api/v1", "/apis/events.k8s.io/v1")
    answer = pilothouse_server.call("DELETE", f"{path}/held", {"preconditions": {"uid": "x"}}, None)
    assert answer.json["message"].startswith(
        'Operation cannot be fulfilled on Event "held": the UID in the precondition'
    )


# Creating by other verbs


def test_who_may_not_create_creates_by_no_verb(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> None:
    namespace = pilothouse_namespace
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    api = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "changers"}}
    rule = {"apiGroups": ["*"], "resources": ["leases", "configmaps"], "verbs": ["update", "patch"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
    pilothouse_server.call("POST", f"{rbac}/roles", {**api, "kind": "Role", "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "changers"}
    binding = {**api, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}
    pilothouse_server.call("POST", f"{rbac}/rolebindings", binding)
    bob = {"Impersonate-User": "bob"}

    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    answer = pilothouse_server.call("PUT", f"{path}/l", json.dumps(lease).encode(), {**JSON, **bob})
    assert answer.status == 403
    assert answer.json["message"] == (
        'leases.coordination.k8s.io "l" is forbidden: User "bob" cannot create resource "leases" in API group '
        f'"coordination.k8s.io" in the namespace "{namespace}"'
    )
    maps = f"/api/v1/namespaces/{namespace}/configmaps/a?fieldManager=bob"
    body = json.dumps(config_map("a")).encode()
    assert pilothouse_server.call("PATCH", maps, body, {**APPLY, **bob}).status == 403
    assert pilothouse_server.call("GET", maps).status == 404
    assert pilothouse_server.call("POST", path, lease).status == 201
    assert pilothouse_server.call("PUT", f"{path}/l", json.dumps(lease).encode(), {**JSON, **bob}).status in (200, 422)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 422),
        ('Application/JSON;charset="utf-8"; x=y;', 422),
        ("application/json;", 422),
        ("application/json; charset", 415),
        ("application/json; =x", 415),
        ("application/json; a=b c", 415),
        ("application/json x", 415),
    ],
)
def test_content_types(maps: Maps, content_type: str, status: int) -> None:
    assert maps("POST", "", b"{}", {"Content-Type": content_type}).status == status


@pytest.mark.parametrize("path", ["pods/p/exec?command=x&", "pods/p/attach?", "services/s/proxy?", "pods/p/proxy/x?"])
def test_connections_know_no_dry_run(pilothouse_server: InProcessServer, path: str) -> None:
    answer = pilothouse_server.call("GET", f"/api/v1/namespaces/default/{path}dryRun=All")
    assert (answer.status, answer.json["message"]) == (400, "dryRun is not supported")


def test_creating_by_put_with_a_version_that_is_none(pilothouse_server: InProcessServer) -> None:
    metadata = {"name": "by-put", "resourceVersion": "x"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
    answer = pilothouse_server.call("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/by-put", lease)
    assert (answer.status, answer.json["message"]) == (500, 'strconv.ParseUint: parsing "x": invalid syntax')


def test_namespaces_are_in_no_namespace_whatever_they_say(pilothouse_server: InProcessServer) -> None:
    path = "/api/v1/namespaces"
    body = {"metadata": {"name": "in-none", "namespace": "other"}}
    assert pilothouse_server.call("POST", path, body).status == 201
    for method, headers in ("PUT", JSON), ("PATCH", MERGE):
        answer = pilothouse_server.call(method, f"{path}/in-none", body, headers)
        assert (answer.status, answer.json["metadata"].get("namespace")) == (200, None)


def test_a_report_about_a_missing_service_creates_it_without_addresses(
    pilothouse_server: InProcessServer, pilothouse_namespace: str
) -> None:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/services/reported"
    body = {"metadata": {"name": "reported"}, "spec": {"ports": [{"port": 80}]}, "status": {}}
    answer = pilothouse_server.call("PUT", f"{path}/status", body, JSON)
    assert (answer.status, answer.json["spec"].get("clusterIP")) == (201, None)
    assert pilothouse_server.call("PATCH", f"{path}-2/status", {"status": {}}, MERGE).status == 404
    assert pilothouse_server.call("DELETE", path).status == 200


def test_a_dry_run_that_takes_the_last_finalizer_away_shows_an_empty_object(maps: Maps) -> None:
    maps.create("held", metadata={"finalizers": ["orphan"]})
    answer = maps("DELETE", "/held", {"propagationPolicy": "Background", "dryRun": ["All"]}, JSON)
    assert (answer.status, answer.json) == (200, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}})
    kept = maps("DELETE", "/held", {"propagationPolicy": "Orphan", "dryRun": ["All"]}, JSON)
    assert kept.json["metadata"]["name"] == "held"
    assert maps("DELETE", "/held", {"propagationPolicy": "Background"}, JSON).json["kind"] == "Status"
