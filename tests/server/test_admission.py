"""Admission on a whole server: reports of type checking where they are asked for, and metrics."""

from __future__ import annotations

import time
from typing import Any

from pilothouse.testing.in_process import InProcessServer

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def policy(*expressions: str) -> dict[str, Any]:
    validations = [{"expression": each} for each in expressions]
    return {
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [RULE]}, "validations": validations},
    }


def observed(server: InProcessServer, generation: int) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while True:
        found = server.call("GET", f"{POLICIES}/p").json
        if found["status"].get("observedGeneration") == generation:
            return dict(found)
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def test_reports_in_the_status() -> None:
    with InProcessServer("--check-policy-types") as server:
        assert server.call("POST", POLICIES, policy("object.dta.size() > 1", "true")).status == 201
        found = observed(server, 1)
        (warning,) = found["status"]["typeChecking"]["expressionWarnings"]
        assert warning["fieldRef"] == "spec.validations[0].expression"
        assert warning["warning"].startswith("/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'dta'\n")
        managers = [(each["manager"], each.get("subresource")) for each in found["metadata"]["managedFields"]]
        assert ("validatingadmissionpolicy-status-controller", "status") in managers
        found["spec"]["validations"] = [{"expression": "object.data.size() > 1"}]
        assert server.call("PUT", f"{POLICIES}/p", found).status == 200
        assert not observed(server, 2)["status"].get("typeChecking")


def test_custom_resources_have_types_too() -> None:
    group = "types.example.com"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    with InProcessServer("--check-policy-types") as server:
        server.establish({"metadata": {"name": f"widgets.{group}"}, "spec": spec})
        made = policy("object.spec.size > 1 && object.metadata.name != ''", "object.spec.colour == 'red'")
        made["spec"]["matchConstraints"]["resourceRules"] = [{**RULE, "apiGroups": [group], "resources": ["widgets"]}]
        assert server.call("POST", POLICIES, made).status == 201
        (warning,) = observed(server, 1)["status"]["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[1].expression"
    assert warning["warning"].startswith(f"{group}/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'colour'")


def test_nothing_unless_asked_for() -> None:
    with InProcessServer() as server:
        assert server.call("POST", POLICIES, policy("object.dta.size() > 1")).status == 201
        hook = "/readyz/poststarthook/start-policy-type-checking"
        assert server.call("GET", hook).status == 404


def test_metrics_of_admission() -> None:
    with InProcessServer() as server:
        config_map = {"metadata": {"name": "m"}}
        assert server.call("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", config_map).status == 201
        page = server.call("GET", "/metrics").body.decode()
    labels = 'type="admit",operation="CREATE",rejected="false"'
    assert f"apiserver_admission_step_admission_duration_seconds_count{{{labels}}}" in page
    name = 'name="NamespaceLifecycle"'
    assert f"apiserver_admission_controller_admission_duration_seconds_count{{{name},{labels}}}" in page
    assert "# TYPE apiserver_cel_compilation_duration_seconds histogram" in page
