"""Lists and maps that clients give as empty: who sees them, and that nothing of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}
SELECTOR = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer("--disable-admission-plugins=ServiceAccount") as running:
        yield running


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}], **spec}}


def definition(schema: dict[str, Any], **root: Any) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"a": schema}, **root}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    version["subresources"] = {"status": {}}
    names = {"plural": "as", "kind": "A"}
    spec = {"group": "e.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "as.e.com"}, "spec": spec}


def test_answers_and_managed_fields_are_those_of_an_object_without(server: InProcessServer) -> None:
    plain = server.call("POST", f"{PODS}?dryRun=All", pod("a")).json
    body = pod("a", tolerations=[], volumes=[], nodeSelector={}, hostAliases=[])
    body["spec"]["containers"][0] |= {"args": [], "resources": {"limits": {}}}
    body["metadata"] |= {"labels": {}, "finalizers": []}
    given = server.call("POST", f"{PODS}?dryRun=All", body).json
    for answer in (plain, given):
        for key in ("uid", "creationTimestamp"):
            del answer["metadata"][key]
        for entry in answer["metadata"]["managedFields"]:
            del entry["time"]
    assert given == plain


@pytest.mark.parametrize(
    ("method", "media_type"),
    [
        ("PUT", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
        ("PATCH", "application/apply-patch+yaml"),
    ],
)
def test_every_way_of_writing_tells_empty_from_none(server: InProcessServer, method: str, media_type: str) -> None:
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    name = f"{method.lower()}-{media_type.split('/')[1].split('+')[0].split('-')[0]}"
    body = {**kind, "metadata": {"name": name}, "spec": SELECTOR}
    assert server.call("POST", POLICIES, body).status == 201
    path = f"{POLICIES}/{name}?fieldManager=me&force=true" if "apply" in media_type else f"{POLICIES}/{name}"
    headers = {"Content-Type": media_type}
    generations = []
    for spec in (SELECTOR, {**SELECTOR, "ingress": []}, {**SELECTOR, "ingress": []}, SELECTOR):
        answer = server.call(method, path, {**body, "spec": spec}, headers=headers)
        assert answer.status == 200, answer.json
        assert "ingress" not in answer.json["spec"]
        generations.append(answer.json["metadata"]["generation"])
    assert generations == [1, 2, 3, 3]


def test_refusals_show_empty_parts(server: InProcessServer) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    assert server.call("POST", jobs, job).status == 201
    template["spec"] = {**template["spec"], "containers": [{"name": "a", "image": "b", "command": []}], "volumes": []}
    refused = server.call("PUT", f"{jobs}/j", job)
    assert refused.status == 422
    (shown,) = (each["message"] for each in refused.json["details"]["causes"] if each["field"] == "spec.template")
    assert '"Command":[],"Args":null' in shown
    assert '"Volumes":[],"InitContainers":null' in shown


def test_admission_policies_see_what_will_be_stored(server: InProcessServer) -> None:
    rule = {"operations": ["*"], "apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "resources": ["*"]}
    registration = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "metadata": {"name": "no-empty"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!has(object.spec.ingress) && type(object.spec) == map"}],
        },
    }
    assert server.call("POST", f"{registration}/validatingadmissionpolicies", policy).status == 201
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "no-empty", "validationActions": ["Deny"]}}
    assert server.call("POST", f"{registration}/validatingadmissionpolicybindings", binding).status == 201
    full = {"metadata": {"name": "full"}, "spec": {**SELECTOR, "ingress": [{}]}}
    while server.call("POST", f"{POLICIES}?dryRun=All", full).status != 422:
        pass
    empty = {"metadata": {"name": "empty"}, "spec": {**SELECTOR, "ingress": []}}
    answer = server.call("POST", POLICIES, empty)
    assert answer.status == 201, answer.json
    assert server.call("DELETE", f"{registration}/validatingadmissionpolicybindings/b").status == 200


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (PODS, pod("x", overhead={}), "pod rejected: Pod Overhead set without corresponding RuntimeClass"),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            {
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "d.example.com",
                    "nodeName": "n",
                    "pool": {"name": "p", "resourceSliceCount": 1},
                    "devices": [],
                    "sharedCounters": [],
                },
            },
            "only one of `sharedCounters` or `devices` is allowed",
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            {"metadata": {"name": "i"}, "spec": {"rules": []}},
            "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified",
        ),
        (
            PODS,
            pod("x", os={"name": "windows"}, securityContext={"supplementalGroups": [], "sysctls": []}),
            'Pod "x" is invalid: spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod',
        ),
        (PODS, pod("x", resources={"claims": []}), "spec.resources.claims: Forbidden: claims may not be set"),
        (
            DEFINITIONS,
            definition({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {**TEXT, "required": []}]}),
            "properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (DEFINITIONS, definition({**TEXT, "dependencies": {}}), "properties[a].dependencies: Forbidden: dependencies"),
        (
            DEFINITIONS,
            definition(TEXT, properties={"metadata": {"type": "object", "required": []}}),
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            DEFINITIONS,
            definition(TEXT, patternProperties={}),
            "fields are allowed at the root of the schema if the status subresource is enabled",
        ),
    ],
)
def test_rules_that_ask_for_none(server: InProcessServer, path: str, body: dict[str, Any], message: str) -> None:
    answer = server.call("POST", path, body)
    assert answer.status in (403, 422)
    assert message in answer.json["message"]


def test_defaults_come_back_once_the_object_is_stored(server: InProcessServer) -> None:
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}, "allocatable": {}}}
    assert server.call("POST", "/api/v1/nodes", node).json["status"]["allocatable"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("resource", "field", "status"),
    [("configmaps", "data", 200), ("configmaps", "binaryData", 422), ("secrets", "data", 422)],
)
def test_what_may_not_change_may_not_become_empty(
    server: InProcessServer, resource: str, field: str, status: int
) -> None:
    path = f"/api/v1/namespaces/default/{resource}"
    body = {"metadata": {"name": field.lower()}, "immutable": True}
    assert server.call("POST", path, body).status == 201
    answer = server.call("PUT", f"{path}/{field.lower()}", {**body, field: {}})
    assert answer.status == status, answer.json


@pytest.mark.parametrize("webhook", [{}, {"conversionReviewVersions": []}, {"conversionReviewVersions": None}])
def test_a_conversion_webhook_of_nothing_is_gone(server: InProcessServer, webhook: dict[str, Any]) -> None:
    body = definition(TEXT)
    body["spec"]["conversion"] = {"strategy": "None", "webhook": webhook}
    answer = server.call("POST", f"{DEFINITIONS}?dryRun=All", body)
    assert answer.json["spec"]["conversion"] == {"strategy": "None"}


def test_fields_of_features_that_are_off_are_a_change_of_slices(server: InProcessServer) -> None:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    device: dict[str, Any] = {"name": "d", "attributes": {"a": {"int": 1}}}
    pool = {"name": "p", "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [device]}
    body = {"metadata": {"name": "gated"}, "spec": spec}
    assert server.call("POST", path, body).status == 201
    body["metadata"]["resourceVersion"] = server.call("GET", f"{path}/gated").json["metadata"]["resourceVersion"]
    device["attributes"]["a"]["versions"] = []
    assert server.call("PUT", f"{path}/gated?dryRun=All", body).json["metadata"]["generation"] == 1
    device["attributes"]["a"]["versions"] = ["1.0.0"]
    changed = server.call("PUT", f"{path}/gated?dryRun=All", body).json
    assert (changed["metadata"]["generation"], changed["spec"]["devices"][0]["attributes"]) == (2, {"a": {"int": 1}})


def test_a_bound_claim_that_asks_for_nothing_keeps_its_size_in_comparisons(server: InProcessServer) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    server.call("POST", claims, {"metadata": {"name": "bound"}, "spec": spec})
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    merge = {"Content-Type": "application/merge-patch+json"}
    server.call("PATCH", f"{claims}/bound/status", {"status": status}, merge)
    wanted = {"metadata": {"name": "bound"}, "spec": {**spec, "resources": {"requests": {}}}}
    causes = server.call("PUT", f"{claims}/bound", wanted).json["details"]["causes"]
    assert [(cause["field"], cause["message"]) for cause in causes] == [
        ("spec.resources[storage]", "Required value"),
        ("spec.resources.requests.storage", "Forbidden: field can not be less than status.capacity"),
    ]
