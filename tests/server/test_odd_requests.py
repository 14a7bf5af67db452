"""Random requests that this server once answered differently from a kube-apiserver (``tools/differential.py``)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
TYPED = "/apis/odd.example/v1/namespaces/default/odds"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "odds.odd.example"},
    "spec": {
        "group": "odd.example",
        "scope": "Namespaced",
        "names": {"plural": "odds", "kind": "Odd"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "when": {"type": "string", "format": "date-time"},
                                    "count": {"type": "integer"},
                                    "any": {"x-kubernetes-int-or-string": True},
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                                "x-kubernetes-validations": [{"rule": "!has(self.count) || self.count != 7"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}


def odd(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "odd.example/v1", "kind": "Odd", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module", autouse=True)
def definition(server: Any) -> None:
    server.establish(DEFINITION)


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_type_of_delete_options_that_is_no_text(server: Any, field: str) -> None:
    status, _, answer = server.call("DELETE", f"{MAPS}/none", {field: 1, "dryRun": "All"})
    why = f"json: cannot unmarshal number into Go struct field .{field} of type string"
    assert (status, answer["message"]) == (400, f"couldn't get version/kind; json parse error: {why}")


def test_media_types_that_custom_resources_name(server: Any) -> None:
    status, _, answer = server.call("POST", TYPED, odd("a"), {"Content-Type": "text/plain"})
    assert status == 415
    assert answer["message"].endswith(": application/json, application/yaml, application/vnd.kubernetes.protobuf")


def test_list_for_a_string_with_a_format(server: Any) -> None:
    """It passes the schema but no type: nobody comes to own its fields."""
    status, _, made = server.call("POST", TYPED, odd("list", when=[1]))
    assert (status, made["spec"], "managedFields" in made["metadata"]) == (201, {"when": [1]}, False)


def test_whole_float_before_a_rule(server: Any) -> None:
    body = orjson.dumps(odd("float", count=2.0))
    status, _, answer = server.call("POST", TYPED, body, {"Content-Type": "application/json"})
    assert status == 422
    assert "invalid data, expected int, got float64 evaluating rule" in answer["message"]


def test_apply_says_nothing_of_unknown_fields(server: Any) -> None:
    status, headers, _ = server.call("PATCH", f"{TYPED}/any?fieldManager=m", odd("any", any={"a": 1}), APPLY)
    assert (status, "warning" in headers) == (422, False)


def test_merge_patch_that_is_quoted_as_it_was_written(server: Any) -> None:
    assert server.call("POST", TYPED, odd("quoted"))[0] == 201
    merge = {"Content-Type": "application/merge-patch+json"}
    patch = rb'{"spec":{"unknown":"\u00e9"}}'
    status, _, answer = server.call("PATCH", f"{TYPED}/quoted?fieldValidation=Strict", patch, merge)
    assert (status, rb"\u00e9" in answer["message"].encode()) == (422, True)


def test_table_of_a_dry_run_has_no_version(server: Any) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dry"}}
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    status, _, table = server.call("POST", f"{MAPS}?dryRun=All", body, accept)
    assert (status, table["metadata"]) == (201, {})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/pods/none/resize"),
        ("PUT", "/api/v1/namespaces/none/finalize"),
        ("POST", "/api/v1/namespaces/default/pods/none/eviction"),
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none/status"),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/none/status"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
def test_what_has_no_table(server: Any, method: str, path: str) -> None:
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    assert server.call(method, path, None if method == "GET" else {}, accept)[0] == 406


def test_a_review_shows_its_metadata_alone(server: Any) -> None:
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    status, _, answer = server.call("POST", reviews, {}, accept)
    assert (status, answer["kind"], set(answer)) == (201, "PartialObjectMetadata", {"kind", "apiVersion", "metadata"})
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    status, _, answer = server.call("POST", reviews, {}, accept)
    assert (status, "is not a list (*authentication.SelfSubjectReview)" in answer["message"]) == (406, True)


def test_a_token_for_an_account_of_another_uid(server: Any) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert server.call("POST", accounts, {"metadata": {"name": "mistaken"}})[0] == 201
    body = {"metadata": {"uid": "u"}, "spec": {"expirationSeconds": 1}}
    status, _, answer = server.call("POST", f"{accounts}/mistaken/token", body)
    assert (status, "the UID in the token request (u) does not match" in answer["message"]) == (409, True)


@pytest.mark.parametrize(("accept", "warned"), [("text/plain", False), ("application/json;as=Nothing", True)])
def test_what_the_router_refuses_is_not_warned_of(server: Any, accept: str, warned: bool) -> None:
    status, headers, _ = server.call("GET", "/api/v1/namespaces/default/endpoints", headers={"Accept": accept})
    assert (status, "warning" in headers) == (406, warned)


def test_an_event_at_a_version_that_is_no_number(server: Any) -> None:
    status, _, answer = server.call("GET", "/api/v1/namespaces/default/events/none?resourceVersion=x")
    assert (status, answer["message"].startswith("invalid resource version: ")) == (400, True)


def test_who_gives_an_empty_list_within_an_atomic_one_owns_that(server: Any) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rule: dict[str, Any] = {"nonResourceURLs": ["/odd"], "verbs": ["get"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "odd"},
        "rules": [rule],
    }
    assert server.call("PATCH", f"{roles}/odd?fieldManager=m", role, APPLY)[0] == 201
    rule["resourceNames"] = []
    _, _, answer = server.call("PUT", f"{roles}/odd?fieldManager=m", role)
    assert [entry["operation"] for entry in answer["metadata"]["managedFields"]] == ["Update"]


def message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(bytes((number << 3 | 2, len(value))) + value for number, value in fields)


@pytest.mark.parametrize("version", [b"", b"x/y/z"])
def test_protobuf_without_a_version(server: Any, version: bytes) -> None:
    name = b"unversioned" + str(len(version)).encode()
    meta = message((1, message((1, name))))
    body = b"k8s\0" + message((1, message((1, version), (2, b"ConfigMap"))), (2, meta))
    assert server.call("POST", MAPS, body, {"Content-Type": PROTOBUF})[0] == 201


@pytest.mark.parametrize(
    ("entry", "status", "told"),
    [
        (message((1, b"k")) + b"\x23", 400, "unexpected EOF"),  # a group that never ends
        (message((1, b"k")) + b"\x24", 400, "unexpected end of group"),
        (message((1, b"k")) + b"\x12\x03v", 201, ""),  # reaches beyond the entry
    ],
)
def test_protobuf_with_odd_entries_of_a_map(server: Any, entry: bytes, status: int, told: str) -> None:
    meta = message((1, message((1, b"entries"))))
    raw = meta + bytes((2 << 3 | 2, len(entry))) + entry + b" \x01"
    body = b"k8s\0" + message((1, message((1, b"v1"), (2, b"ConfigMap"))), (2, raw))
    got, _, answer = server.call("POST", f"{MAPS}?dryRun=All", body, {"Content-Type": PROTOBUF})
    assert (got, told in answer.get("message", "")) == (status, True)


def test_raw_text_in_protobuf(server: Any) -> None:
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    body = (
        b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"raw"},"revision":1,"data":{"a": 1}}'
    )
    assert server.call("POST", path, body, {"Content-Type": "application/json"})[0] == 201
    assert b'{"a": 1}' in server.call("GET", f"{path}/raw", headers={"Accept": PROTOBUF})[2]


def test_long_handler(server: Any) -> None:
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}, "handler": "x" * 64}
    status, _, answer = server.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", body)
    assert (status, answer["details"]["causes"][0]["message"][-31:]) == (422, ": must be no more than 63 bytes")


def test_graver_errors_of_a_definition(server: Any) -> None:
    """What reads its JSON itself stops at its error; others are told only if there is none such."""
    version = {
        "name": "v1",
        "served": "a",
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "additionalProperties": ""}},
    }
    body = {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": [version]}}  # type: ignore[dict-item]
    status, _, answer = server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    assert (status, answer["message"].rpartition(": ")[2]) == (400, "boolean or JSON schema expected")


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/apis/apiregistration.k8s.io", "/version"])
def test_content_type_of_a_document_that_takes_none(server: Any, path: str) -> None:
    """Routes of documents name what they consume, and are held to it by a GET without a body."""
    status, _, answer = server.call("GET", path, headers={"Content-Type": "text/plain"})
    assert (status, answer["message"]) == (415, "415: Unsupported Media Type")
    assert server.call("GET", path, headers={"Content-Type": "text/plain, application/json"})[0] == 200


@pytest.mark.parametrize("path", ["/apis", "/apis/apps", "/apis/odd.example/v1"])
def test_content_type_of_a_document_without_a_route(server: Any, path: str) -> None:
    assert server.call("GET", path, headers={"Content-Type": "text/plain"})[0] == 200


def test_path_below_the_version(server: Any) -> None:
    status, _, answer = server.call("GET", "/version/x")
    assert (status, answer["message"]) == (404, "the server could not find the requested resource")


@pytest.mark.parametrize(
    ("accept", "status", "message"),
    [
        ("text/plain, */*", 404, 'pods "none" not found'),
        ("text/plain", 406, "only the following media types are accepted: application/json, application/yaml, "
         "application/vnd.kubernetes.protobuf"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", 406, "only the following media types are accepted: "
         "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("text/html", 406, "406: Not Acceptable\n\nAvailable representations: text/plain, application/json, "
         "application/yaml, application/vnd.kubernetes.protobuf"),
    ],
)  # fmt: skip
def test_accepted_forms_of_a_log(server: Any, accept: str, status: int, message: str) -> None:
    """The route of a log offers text, but its handler asks for a form that objects have."""
    path = "/api/v1/namespaces/default/pods/none/log"
    answered, _, answer = server.call("GET", path, headers={"Accept": accept})
    assert (answered, answer["message"]) == (status, message)


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "configmaps/a", 400, "Namespace parameter required."),
        ("DELETE", "pods/a", 400, "Namespace parameter required."),
        ("GET", "pods/a/log", 400, "Namespace parameter required."),
        ("POST", "configmaps/a", 405, "the server does not allow this method on the requested resource"),
        ("PUT", "pods/a/log", 405, "the server does not allow this method on the requested resource"),
        ("GET", "pods/a/nothing", 404, "the server could not find the requested resource"),
    ],
)
def test_namespace_that_is_empty(server: Any, method: str, path: str, status: int, message: str) -> None:
    answered, _, answer = server.call(method, f"/api/v1/namespaces//{path}")
    assert (answered, answer["message"]) == (status, message)


def test_an_address_gets_no_letters_from_a_prefix(server: Any) -> None:
    path = "/apis/networking.k8s.io/v1/ipaddresses"
    body = {"metadata": {"generateName": "10.0.99.7"}, "spec": {"parentRef": {"resource": "services", "name": "a"}}}
    assert server.call("POST", path, body)[2]["metadata"]["name"] == "10.0.99.7"
    status, _, answer = server.call("POST", path, body)
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    body["metadata"]["generateName"] = "a"
    assert server.call("POST", path, body)[2]["details"]["name"] == "a"
    assert server.call("DELETE", f"{path}/10.0.99.7")[0] == 200


def test_a_collection_of_the_past_is_deleted(server: Any) -> None:
    """Without a limit too, as collections are listed in pages; what came later stays."""
    path = "/api/v1/namespaces/default/configmaps"

    def make(name: str) -> str:
        body = {"metadata": {"name": name, "labels": {"of": "the-past"}}}
        version: str = server.call("POST", path, body)[2]["metadata"]["resourceVersion"]
        return version

    selected = f"{path}?labelSelector=of%3Dthe-past"
    before = make("of-the-past")
    make("of-the-present")
    _, _, deleted = server.call("DELETE", f"{selected}&resourceVersion={before}")
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["of-the-past"]
    left = server.call("GET", selected)[2]["items"]
    assert [item["metadata"]["name"] for item in left] == ["of-the-present"]


@pytest.mark.parametrize("group", ["api/v1", "apis/events.k8s.io/v1"])
def test_events_of_both_groups_have_one_type(server: Any, group: str) -> None:
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    status, _, answer = server.call("GET", f"/{group}/events", headers=accept)
    assert (status, answer["message"].rpartition(" ")[2]) == (406, "(*core.EventList)")


def test_writes_to_a_namespace_that_is_empty(server: Any) -> None:
    """What comes of a variable that is not set in a script: nothing may come of it for other namespaces."""
    path = "/api/v1/namespaces//configmaps"
    body = {"metadata": {"name": "x", "namespace": "default"}}
    status, _, answer = server.call("POST", path, body)
    assert (status, answer["message"]) == (422, 'ConfigMap "x" is invalid: metadata.namespace: Required value')
    kept = [each["metadata"]["uid"] for each in server.call("GET", "/api/v1/configmaps")[2]["items"]]
    assert kept
    status, _, answer = server.call("DELETE", path)
    assert (status, answer["message"]) == (400, "Namespace parameter required.")
    assert [each["metadata"]["uid"] for each in server.call("GET", "/api/v1/configmaps")[2]["items"]] == kept
    assert server.call("DELETE", f"{path}?labelSelector=a%3Dnone")[2]["items"] == []
    assert server.call("DELETE", "/api/v1/configmaps")[0] == 405


@pytest.mark.parametrize(("kind", "path"), [("ConfigMap", "configmaps"), ("Pod", "pods"), ("Event", "events")])
def test_apply_of_an_object_whose_metadata_is_left_empty(server: Any, kind: str, path: str) -> None:
    body = f"apiVersion: v1\nkind: {kind}\nmetadata:\n".encode()
    where = f"/api/v1/namespaces/default/{path}/empty?fieldManager=m"
    status, _, answer = server.call("PATCH", where, body, {"Content-Type": "application/apply-patch+yaml"})
    why = "the name of the object (empty based on URL) was undeterminable: name must be provided"
    assert (status, answer["message"]) == (400, why)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_change_of_a_custom_resource_without_a_name(server: Any, method: str) -> None:
    status, _, answer = server.call(method, TYPED, {}, {"Content-Type": "application/merge-patch+json"})
    assert (status, answer["message"]) == (400, "name must be provided")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("List", 'no kind "List" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'),
        ("WatchEvent", "converting (v1.WatchEvent) to (apps.Deployment): unknown conversion"),
    ],
)
def test_kinds_that_all_groups_share(server: Any, kind: str, why: str) -> None:
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}}
    status, _, answer = server.call("POST", "/apis/apps/v1/namespaces/default/deployments", body)
    assert (status, answer["message"]) == (400, f'{kind} in version "v1" cannot be handled as a Deployment: {why}')


@pytest.mark.parametrize(
    ("options", "named"),
    [("", True), ("&limit=x", False), ("&timeoutSeconds=", False), ("&labelSelector=a%20b", False), ("&watch=x", True)],
)
def test_name_in_a_selector_beside_options_nobody_can_read(server: Any, options: str, named: bool) -> None:
    """Who is forbidden a list of one object is told its name, unless any option of the list is wrong."""
    path = f"{MAPS}?fieldSelector=metadata.name%3Da{options}"
    status, _, answer = server.call("GET", path, headers={"Impersonate-User": "somebody"})
    assert (status, answer["details"].get("name")) == (403, "a" if named else None)


def test_custom_resource_of_another_kind(server: Any) -> None:
    """Its values are not judged then, but what is embedded and what rules say are."""
    body = {**odd("other", count=7, whole={"apiVersion": "v1", "kind": "X", "metadata": {"labels": 1}}), "kind": "Even"}
    status, _, answer = server.call("POST", TYPED, body)
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    assert (status, answer["details"]["kind"]) == (422, "Even")
    assert fields == ["kind", "spec.whole.metadata", "spec"]


@pytest.mark.parametrize("position", ["1", "-1"])
def test_item_that_a_patch_went_through_is_quoted_with_its_keys_sorted(server: Any, position: str) -> None:
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    body = {"metadata": {"name": f"quoted{position}"}, "template": {"spec": {"containers": containers}}}
    templates = "/api/v1/namespaces/default/podtemplates"
    assert server.call("POST", templates, body)[0] == 201
    path = f"/template/spec/containers/{position}/image"
    patch = [{"op": "replace", "path": path, "value": 1, "from": "/template/spec/containers/0/name"}]
    json_patch = {"Content-Type": "application/json-patch+json"}
    status, _, answer = server.call("PATCH", f"{templates}/quoted{position}", patch, json_patch)
    assert status == 422
    assert r"{\"image\":1,\"imagePullPolicy\":\"Always\",\"name\":\"b\"" in answer["message"]
    assert r"{\"name\":\"a\",\"image\":\"i\"" in answer["message"]


def test_forms_of_a_scale_of_a_custom_resource(server: Any) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "sizes", "kind": "Size"}
    spec = {"group": "odd.example", "scope": "Namespaced", "names": names}
    spec["versions"] = [{**version, "subresources": {"status": {}, "scale": paths}}]
    server.establish({**DEFINITION, "metadata": {"name": "sizes.odd.example"}, "spec": spec})
    sizes = "/apis/odd.example/v1/namespaces/default/sizes"
    assert server.call("POST", sizes, {**odd("a", size=2), "kind": "Size"})[0] == 201
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    status, _, table = server.call("GET", f"{sizes}/a/scale", headers=accept)
    columns = [(column["name"], column["type"]) for column in table["columnDefinitions"]]
    assert (status, columns) == (
        200,
        [("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "date")],
    )
    assert table["rows"][0]["cells"][:3] == ["a", 2, 0]
    binary = "application/vnd.kubernetes.protobuf"
    status, headers, shown = server.call("GET", f"{sizes}/a/scale", headers={"Accept": f"{binary},application/json"})
    assert (status, headers["content-type"], shown["spec"]) == (200, "application/json", {"replicas": 2})
    taken = "only the following media types are accepted: application/json, application/yaml, " + binary
    for accepted in ("text/plain", "application/cbor"):
        status, _, answer = server.call("GET", f"{sizes}/a/scale", headers={"Accept": accepted})
        assert (status, answer["message"]) == (406, taken)
    assert server.call("GET", f"{sizes}/a/scale", headers={"Accept": binary})[0] == 406
    for body, kind in ((b"", "application/json"), (b"{", "application/json"), (b"{}", binary)):
        status, _, answer = server.call("PUT", f"{sizes}/a/scale", body, {"Content-Type": kind})
        assert (status, answer["message"].partition(" in scheme ")[0]) == (
            400,
            "no kind is registered for the type v1.Scale",
        )


def test_deletion_that_asks_for_a_wrong_table(server: Any) -> None:
    """The object is gone, and the answer is a Status; but the parameter would be wrong for a table."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert server.call("POST", leases, {"metadata": {"name": "gone"}})[0] == 201
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    status, _, answer = server.call("DELETE", f"{leases}/gone?includeObject=All", headers=accept)
    assert (status, "includeObject: Invalid value" in answer["message"]) == (400, True)
    assert server.call("GET", f"{leases}/gone")[0] == 404


def test_rules_wait_for_metadata_to_be_right(server: Any) -> None:
    body = odd("unnamed", count=7)
    del body["metadata"]["name"]
    status, _, answer = server.call("POST", TYPED, body)
    assert (status, [cause["field"] for cause in answer["details"]["causes"]]) == (422, ["metadata.name", "<nil>"])


@pytest.mark.parametrize(
    ("query", "accept", "status"),
    [("", "*/*", 405), ("", "text/html", 406), ("&labelSelector=a%20b", "*/*", 400), ("&limit=x", "*/*", 400)],
)
def test_watch_of_what_cannot_be_watched(server: Any, query: str, accept: str, status: int) -> None:
    path = f"/api/v1/componentstatuses?watch=1{query}"
    assert server.call("GET", path, headers={"Accept": accept})[0] == status


def test_name_that_is_taken_beside_a_prefix(server: Any) -> None:
    body = {"metadata": {"name": "taken", "generateName": "free-"}}
    assert server.call("POST", MAPS, body)[0] == 201
    status, headers, answer = server.call("POST", MAPS, body)
    assert (status, headers["retry-after"], answer["details"]["retryAfterSeconds"]) == (409, "1", 1)
    assert answer["message"].endswith("the server was not able to generate a unique name for the object")


def test_null_that_is_stored_is_a_change(server: Any) -> None:
    sizes = "/apis/odd.example/v1/namespaces/default/sizes"
    made = server.call("POST", sizes, {**odd("null"), "kind": "Size"})[2]
    assert made["metadata"]["generation"] == 1
    status, _, changed = server.call("PUT", f"{sizes}/null", {**made, "more": None})
    assert (status, changed["metadata"]["generation"], changed["more"]) == (200, 2, None)


def test_character_that_is_cut_off_in_a_quotation(server: Any) -> None:
    """Each of its bytes is shown as one that cannot be read."""
    body = b'{"apiVersion": "v1", "kind":\xef\xbb\xbf "ConfigMap"}'
    status, _, answer = server.call("POST", MAPS, body, {"Content-Type": "application/json"})
    assert (status, answer["message"].endswith('({"apiVersion": "v1", "kind":\ufffd\ufffd ...)')) == (400, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {[a]: b}\nx: *y", "yaml: unknown anchor 'y' referenced"),
        ("data: {a: !!binary '*'}\n: b", "yaml: line 1: did not find expected key"),
        ("data: {~: .inf}", "unsupported map key of type: %!s(<nil>), key: <nil>, value: +Inf"),
        ("data: {a: .inf, ~: }", "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>"),
        ("a: .nan\ndata: {[a]: b}", 'yaml: invalid map key: []interface {}{"a"}'),
        (r'a: "\/"', "yaml: found unknown escape character"),
        (f'a: b\nb: "x\n  {chr(92)}/"', "yaml: line 3: found unknown escape character"),
        ('a: b\nb: {"a":{b":{}}}', "yaml: line 1: did not find expected ',' or '}'"),
        ("a: [b:[c]]", "yaml: did not find expected ',' or ']'"),
        ("a: {b: c?d}", "yaml: did not find expected ',' or '}'"),
    ],
)
def test_first_thing_that_is_wrong_with_yaml(server: Any, text: str, message: str) -> None:
    """All of a document is parsed before values are made, and those before JSON is."""
    status, _, answer = server.call("POST", MAPS, text.encode(), {"Content-Type": "application/yaml"})
    assert status == 400
    assert f"ConfigMap): {message} (" in answer["message"]


def test_fields_of_yaml_are_decoded_in_their_order(server: Any) -> None:
    text = b"kind: ConfigMap\napiVersion: v1\ndata: {a: 1}\nbinaryData: {a: 1}\n"
    status, _, answer = server.call("POST", MAPS, text, {"Content-Type": "application/yaml"})
    assert (status, "field ConfigMap.binaryData of type []uint8" in answer["message"]) == (400, True)


@pytest.mark.parametrize("content", ["json", "yaml"])
@pytest.mark.parametrize(
    ("version", "kind", "validation", "message"),
    [
        (
            "odd.example/v1",
            "",
            "Ignore",
            "Odd in version \"v1\" cannot be handled as a Odd: Object 'Kind' is missing in",
        ),
        (
            "odd.example/v1",
            "",
            "Warn",
            "the object provided is unrecognized (must be of type Odd): Object 'Kind' is miss",
        ),
        ("", "Odd", "Strict", "Object 'apiVersion' is missing in 'object has no apiVersion field'"),
        ("", "Odd", "Warn", "the API version in the data () does not match the expected API version (odd.example/v1)"),
        (
            "odd.example/",
            "Odd",
            "Warn",
            "the API version in the data (odd.example/) does not match the expected API ver",
        ),
    ],
)
def test_custom_resource_that_does_not_say_what_it_is(
    server: Any, content: str, version: str, kind: str, validation: str, message: str
) -> None:
    given = {"apiVersion": version, "kind": kind, "metadata": {"name": "what", "unknown": 1}}
    body = {name: value for name, value in given.items() if value}
    path, headers = f"{TYPED}?fieldValidation={validation}", {"Content-Type": f"application/{content}"}
    status, _, answer = server.call("POST", path, orjson.dumps(body), headers)
    assert (status, answer["message"][: len(message)]) == (400, message)


@pytest.mark.parametrize("patched", ["merge-patch+json", "json-patch+json"])
@pytest.mark.parametrize("kind", ["Secret", "ConfigMapList", "Status"])
def test_patch_that_makes_another_kind_of_an_object(server: Any, kind: str, patched: str) -> None:
    name = f"turned-{kind.lower()}-{patched[0]}"
    assert server.call("POST", MAPS, {"metadata": {"name": name}})[0] == 201
    patch = {"kind": kind} if patched[0] == "m" else [{"op": "replace", "path": "/kind", "value": kind}]
    headers = {"Content-Type": f"application/{patched}"}
    status, _, answer = server.call("PATCH", f"{MAPS}/{name}", patch, headers)
    assert status == 422
    assert answer["message"].endswith(f": converting (v1.{kind}) to (core.ConfigMap): unknown conversion")
