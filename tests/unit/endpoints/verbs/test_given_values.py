"""What a client wrote, where the way it wrote it matters: raw values and empty lists and maps."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON = {"Content-Type": "application/json"}
NOTE = b'{"metadata":{"annotations":{"x":"1"}}}'
HEAD = b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r"},"revision":1,"data":'


@pytest.mark.parametrize(
    ("text", "patch", "code"),
    [
        (b'{"b":1,"a":2}', MERGE, 200),
        (b'{"a":1,"b":2}', STRATEGIC, 200),
        (b'{"b":1,"a":2}', STRATEGIC, 422),
        (b'{"b": 1}', MERGE, 422),
        (b'{"b":\n1}', MERGE, 422),
        (b'{"b":"\\u00e9 <x>"}', MERGE, 200),
    ],
)
def test_patches_rewrite_raw_values(
    text: bytes, patch: dict[str, str], code: int, pilothouse_server: InProcessServer, pilothouse_namespace: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{pilothouse_namespace}/controllerrevisions"
    call = pilothouse_server.call
    assert call("POST", path, HEAD + text + b"}", JSON).status == 201
    assert call("PUT", f"{path}/r", HEAD + text + b"}", JSON).status == 200
    answer = call("PATCH", f"{path}/r", NOTE, patch)
    assert answer.status == code, answer.body
    if code == 422:
        assert answer.json["message"].endswith("field is immutable")
        assert answer.json["details"]["causes"][0]["field"] == "data"


@pytest.mark.parametrize(
    ("sent", "shown"), [(b'"\\u0000"', '"\\u0000"'), (b'{"a": "\\u00e9 <"}', '{"a":"\\u00e9 \\u003c"}')]
)
def test_refused_raw_values_are_quoted_as_they_were_sent(
    pilothouse_server: InProcessServer, pilothouse_namespace: str, sent: bytes, shown: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{pilothouse_namespace}/controllerrevisions"
    assert pilothouse_server.call("POST", path, HEAD + b'{"a":1}}', JSON).status == 201
    answer = pilothouse_server.call("PUT", f"{path}/r", HEAD + sent + b"}", JSON)
    assert answer.json["details"]["causes"][0]["message"] == f"Invalid value: {shown}: field is immutable"


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        (b'{"x":"\\u0042"}', '{"x":"\\u0042","y":1.50}'),
        (b'{"x":"A"}', '{"x":"A","y":1.50}'),
        (b'{"x":"\\u0041"}', ""),
    ],
)
def test_a_merge_patch_changes_texts(
    pilothouse_server: InProcessServer, pilothouse_namespace: str, patch: bytes, shown: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{pilothouse_namespace}/controllerrevisions"
    assert pilothouse_server.call("POST", path, HEAD + b'{"x":"\\u0041","y":1.50}}', JSON).status == 201
    answer = pilothouse_server.call("PATCH", f"{path}/r", b'{"data":%s}' % patch, MERGE)
    assert answer.status == (422 if shown else 200)
    if shown:
        assert answer.json["details"]["causes"][0]["message"] == f"Invalid value: {shown}: field is immutable"


def test_another_text_is_another_generation(pilothouse_server: InProcessServer) -> None:
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    config = b'{"config":[{"opaque":{"driver":"d.example.com","parameters":{"a": 1}}}]}'
    body = b'{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"c"},"spec":%s}' % config
    call = pilothouse_server.call
    assert call("POST", path, body, JSON).json["metadata"]["generation"] == 1
    assert call("PUT", f"{path}/c", body, JSON).json["metadata"]["generation"] == 1
    assert call("PATCH", f"{path}/c", NOTE, MERGE).json["metadata"]["generation"] == 2
    assert call("PATCH", f"{path}/c", NOTE, MERGE).json["metadata"]["generation"] == 2
    assert call("DELETE", f"{path}/c").json["spec"] == {
        "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}]
    }


def autoscaler(rules: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 2, "behavior": {"scaleDown": rules}},
    }


def test_no_policies_are_not_the_default_ones(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> None:
    path = f"/apis/autoscaling/v2/namespaces/{pilothouse_namespace}/horizontalpodautoscalers"
    refused = pilothouse_server.call("POST", path, autoscaler({"policies": []}))
    assert refused.json["message"].endswith("policies: Required value: must specify at least one Policy")
    created = pilothouse_server.call("POST", path, autoscaler({"stabilizationWindowSeconds": 5}))
    assert [policy["type"] for policy in created.json["spec"]["behavior"]["scaleDown"]["policies"]] == ["Percent"]


def test_reported_claims_can_be_cleared(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> None:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "a", "image": "a"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
        },
    }
    call = pilothouse_server.call
    assert call("POST", path, pod).status == 201
    claims = [{"name": "gpu", "resourceClaimName": "x"}]
    answer = call("PATCH", f"{path}/p/status", {"status": {"resourceClaimStatuses": claims}}, MERGE)
    assert answer.json["status"]["resourceClaimStatuses"] == claims, answer.body
    pod["status"] = {"resourceClaimStatuses": []}
    answer = call("PUT", f"{path}/p/status", pod)
    assert answer.status == 200, answer.body
    assert "resourceClaimStatuses" not in answer.json["status"]
    assert b"resourceClaimStatuses" not in answer.body


@pytest.mark.parametrize(
    ("version", "labels"),
    [("apps/v1beta1", {"app": "a"}), ("apps/v1beta2", None), ("extensions/v1beta1", {"app": "a"})],
)
def test_a_patch_may_name_an_older_version(
    version: str, labels: Any, pilothouse_server: InProcessServer, pilothouse_namespace: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{pilothouse_namespace}/deployments"
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    assert "labels" not in pilothouse_server.call("POST", path, body).json["metadata"]
    answer = pilothouse_server.call("PATCH", f"{path}/d", {"apiVersion": version}, MERGE)
    assert (answer.status, answer.json["apiVersion"]) == (200, "apps/v1"), answer.body
    assert answer.json["metadata"].get("labels") == labels


CLAIMLESS = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "resources": {"claims": []}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CLAIMLESS}


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/api/v1/namespaces/{}/pods", {"spec": CLAIMLESS}, "spec"),
        ("/api/v1/namespaces/{}/podtemplates", {"template": TEMPLATE}, "template.spec"),
        ("/apis/batch/v1/namespaces/{}/jobs", {"spec": {"template": TEMPLATE}}, "spec.template.spec"),
        (
            "/apis/batch/v1/namespaces/{}/cronjobs",
            {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}},
            "spec.jobTemplate.spec.template.spec",
        ),
    ],
)
def test_pods_as_a_whole_have_no_claims_not_even_none(
    pilothouse_server: InProcessServer, pilothouse_namespace: str, path: str, body: dict[str, Any], where: str
) -> None:
    answer = pilothouse_server.call("POST", path.format(pilothouse_namespace), {"metadata": {"name": "a"}, **body})
    error = f"{where}.resources.claims: Forbidden: claims may not be set for Resources at pod-level"
    assert (answer.status, error in answer.json["message"]) == (422, True)


@pytest.mark.parametrize("number", ["1.0", "1e3", "1E3", "-9223372036854775809", "0.1e-5", "2.50"])
@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_refused_numbers_are_quoted(pilothouse_server: InProcessServer, number: str, verb: str) -> None:
    body = b'{"metadata":{"name":"x","generation":%s}}' % number.encode()
    path = "/api/v1/namespaces/default/configmaps" + ("" if verb == "POST" else "/x")
    answer = pilothouse_server.call(verb, path, body, JSON)
    assert answer.status == 400
    assert f": json: cannot unmarshal number {number} into Go struct field" in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"Kind":"Pod"}', 400, 'Pod in version "v1"'),
        (b'{"APIVERSION":"v2","metadata":{"name":"n"}}', 400, 'in version "v2"'),
        (b'{"KIND":1,"metadata":{"name":"n"}}', 400, "json: cannot unmarshal number into Go struct field .kind"),
        (b'{"kind":1,"apiVersion":1,"metadata":{"name":"n"}}', 400, "Go struct field .kind"),
        (b'{"apiVersion":1,"kind":1,"metadata":{"name":"n"}}', 400, "Go struct field .apiVersion"),
        (b'{"kind":"ConfigMap","Kind":null,"metadata":{"name":"n"}}', 201, ""),
        (b'{"apiVersion":"/","metadata":{"name":"n"}}', 201, ""),
    ],
)
def test_types_of_objects_in_any_case(
    pilothouse_server: InProcessServer, pilothouse_namespace: str, body: bytes, status: int, part: str
) -> None:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/configmaps"
    answer = pilothouse_server.call("POST", path, body, JSON)
    assert answer.status == status, answer.body
    assert part in answer.json.get("message", "")
