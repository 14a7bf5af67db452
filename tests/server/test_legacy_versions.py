"""Versions that are served no more, on a whole server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

DEPLOYMENTS = "namespaces/default/deployments"
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    plugins = "--enable-admission-plugins=PodPreset,PodSecurityPolicy"
    with InProcessServer(
        "--runtime-config=api/legacy=true", plugins, "--disable-admission-plugins=ServiceAccount"
    ) as made:
        yield made


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": TEMPLATE, **spec}}


def test_defaults_are_those_of_the_version_written_through(server: InProcessServer) -> None:
    limits = {}
    for version in ("extensions/v1beta1", "apps/v1beta1"):
        name = version.replace("/", "-")
        answer = server.call("POST", f"/apis/{version}/{DEPLOYMENTS}", deployment(name))
        assert answer.status == 201
        assert answer.json["spec"]["selector"] == {"matchLabels": {"app": "web"}}
        stored = server.call("GET", f"/apis/apps/v1/{DEPLOYMENTS}/{name}").json
        limits[version] = stored["spec"]["revisionHistoryLimit"]
    assert limits == {"extensions/v1beta1": 2**31 - 1, "apps/v1beta1": 2}
    assert server.call("POST", f"/apis/apps/v1beta2/{DEPLOYMENTS}", deployment("x")).status == 422


def test_selectors_change_and_deletion_orphans(server: InProcessServer) -> None:
    server.call("POST", f"/apis/extensions/v1beta1/{DEPLOYMENTS}", deployment("free"))
    other = {**TEMPLATE, "metadata": {"labels": {"app": "other"}}}
    changed = deployment("free", template=other)
    assert server.call("PUT", f"/apis/extensions/v1beta1/{DEPLOYMENTS}/free", changed).status == 200
    fixed = deployment("free", selector={"matchLabels": {"app": "web"}})
    assert server.call("PUT", f"/apis/apps/v1/{DEPLOYMENTS}/free", fixed).status == 422
    gone = server.call("DELETE", f"/apis/extensions/v1beta1/{DEPLOYMENTS}/free").json
    assert gone["metadata"]["finalizers"] == ["orphan"]


def test_rollback_is_noted(server: InProcessServer) -> None:
    server.call("POST", f"/apis/extensions/v1beta1/{DEPLOYMENTS}", deployment("back"))
    answer = server.call(
        "POST", f"/apis/apps/v1beta1/{DEPLOYMENTS}/back/rollback", {"name": "back", "rollbackTo": {"revision": 3}}
    )
    assert (answer.status, answer.json["code"]) == (201, 200)
    shown = server.call("GET", f"/apis/extensions/v1beta1/{DEPLOYMENTS}/back").json
    assert shown["spec"]["rollbackTo"] == {"revision": 3}
    stored = server.call("GET", f"/apis/apps/v1/{DEPLOYMENTS}/back").json
    assert stored["metadata"]["annotations"] == {"deprecated.deployment.rollback.to": "3"}


def test_ingresses_name_their_own_fields(server: InProcessServer) -> None:
    path = "/apis/extensions/v1beta1/namespaces/default/ingresses"
    body = {"metadata": {"name": "i"}, "spec": {"backend": {"serviceName": "", "servicePort": "Bad Port"}}}
    refused = server.call("POST", path, body)
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [
        "spec.backend.serviceName",
        "spec.backend.servicePort",
    ]
    body["spec"] = {"backend": {"serviceName": "s", "servicePort": 80}}
    assert server.call("POST", path, body).status == 201
    today = server.call("GET", "/apis/networking.k8s.io/v1/namespaces/default/ingresses/i").json
    assert today["spec"]["defaultBackend"] == {"service": {"name": "s", "port": {"number": 80}}}


def test_definitions_without_a_schema(server: InProcessServer) -> None:
    names = {"plural": "things", "kind": "Thing"}
    body = {
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": names, "version": "v1"},
    }
    path = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"
    made = server.call("POST", path, body)
    assert made.status == 201
    assert made.json["spec"]["preserveUnknownFields"] is True
    assert made.json["spec"]["versions"] == [{"name": "v1", "served": True, "storage": True}]


def test_presets_and_policies_shape_pods(server: InProcessServer) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p", "labels": {"role": "web"}}, "spec": TEMPLATE["spec"]}
    refused = server.call("POST", pods, pod)
    assert refused.status == 403
    assert "no providers available" in refused.json["message"]
    anything = {"rule": "RunAsAny"}
    policy = {
        "metadata": {"name": "locked"},
        "spec": {
            "seLinux": anything,
            "supplementalGroups": anything,
            "fsGroup": anything,
            "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": 100, "max": 200}]},
            "readOnlyRootFilesystem": True,
        },
    }
    assert server.call("POST", "/apis/policy/v1beta1/podsecuritypolicies", policy).status == 201
    preset = {"metadata": {"name": "db"}, "spec": {"env": [{"name": "DB", "value": "1"}]}}
    assert server.call("POST", "/apis/settings.k8s.io/v1alpha1/namespaces/default/podpresets", preset).status == 201
    made = server.call("POST", pods, pod).json
    (container,) = made["spec"]["containers"]
    assert container["env"] == [{"name": "DB", "value": "1"}]
    assert container["securityContext"] == {"runAsUser": 100, "readOnlyRootFilesystem": True}
    assert made["metadata"]["annotations"]["kubernetes.io/psp"] == "locked"
    root = {**pod, "metadata": {"name": "r"}, "spec": {**pod["spec"], "securityContext": {"runAsUser": 0}}}
    assert "must be in the ranges: [{100 200}]" in server.call("POST", pods, root).json["message"]


def test_audit_sinks_get_what_their_policies_name(start_peer: Callable[[Any], Any]) -> None:
    peer = start_peer(lambda path, body: (200, {}))
    authority = base64.b64encode(peer.authority.read_bytes()).decode()

    def sink(name: str, level: str, *stages: str) -> dict[str, Any]:
        client = {"url": f"{peer.url}/{name}", "caBundle": authority}
        spec = {"policy": {"level": level, "stages": list(stages)}, "webhook": {"clientConfig": client}}
        return {"metadata": {"name": name}, "spec": spec}

    config = {"metadata": {"name": "audited"}, "data": {"a": "b"}}
    path = "/apis/auditregistration.k8s.io/v1alpha1/auditsinks"
    with InProcessServer("--runtime-config=auditregistration.k8s.io/v1alpha1=true") as server:
        assert server.call("POST", path, sink("brief", "Metadata", "ResponseComplete")).status == 201
        assert (
            server.call("POST", path, sink("full", "RequestResponse", "RequestReceived", "ResponseComplete")).status
            == 201
        )
        assert server.call("POST", path, sink("none", "None")).status == 201
        assert server.call("POST", "/api/v1/namespaces/default/configmaps", config).status == 201
    events: dict[str, list[Any]] = {}
    for target, body in peer.requests:
        assert (body["kind"], body["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
        name = target.removesuffix("?timeout=30s")
        events.setdefault(name, []).extend(
            event for event in body["items"] if event["requestURI"] == "/api/v1/namespaces/default/configmaps"
        )
    brief, full = events["/brief"], events["/full"]
    assert [(event["level"], event["stage"]) for event in brief] == [("Metadata", "ResponseComplete")]
    assert "requestObject" not in brief[0]
    assert [event["stage"] for event in full] == ["RequestReceived", "ResponseComplete"]
    assert full[1]["requestObject"]["data"] == {"a": "b"}
    assert full[1]["responseObject"]["metadata"]["name"] == "audited"
    assert "/none" not in events


def test_policies_for_todays_version_see_what_comes_through_old_ones(server: InProcessServer) -> None:
    policies = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    few = {"expression": "object.apiVersion == 'apps/v1' && object.spec.replicas < 5", "message": "too many"}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [few]}
    made = {"metadata": {"name": "few"}, "spec": policy}
    assert server.call("POST", f"{policies}/validatingadmissionpolicies", made).status == 201
    binding = {"metadata": {"name": "few"}, "spec": {"policyName": "few", "validationActions": ["Deny"]}}
    assert server.call("POST", f"{policies}/validatingadmissionpolicybindings", binding).status == 201
    path = f"/apis/extensions/v1beta1/{DEPLOYMENTS}"
    refused = server.call("POST", path, deployment("many", replicas=9))
    assert refused.status == 422
    assert "too many" in refused.json["message"]
    assert server.call("POST", path, deployment("less", replicas=2)).status == 201
