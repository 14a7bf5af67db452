"""Admission policies on a real server: params of custom kinds, and custom resources that policies change."""

from __future__ import annotations

import time

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
GROUP = "policies.example.com"
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "note": {"type": "string"}}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC}}
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
ONLY_DEFAULT = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}


def establish(server):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    code, _, answer = server.call("POST", CRDS, {"metadata": {"name": f"widgets.{GROUP}"}, "spec": spec})
    assert code == 201, answer
    deadline = time.monotonic() + 10
    while server.call("GET", WIDGETS)[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def constraints(group, resource):
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}
    return {"resourceRules": [rule]}


def install(server, kind, name, spec, binding):
    for resource, body in ((f"{kind}policies", spec), (f"{kind}policybindings", {"policyName": name, **binding})):
        code, _, answer = server.call("POST", f"{POLICIES}/{resource}", {"metadata": {"name": name}, "spec": body})
        assert code == 201, answer


def test_custom_resources_and_policies(server):
    establish(server)
    mutation = {"expression": "Object{spec: Object.spec{note: 'size ' + string(object.spec.size)}}"}
    spec = {
        "matchConstraints": constraints(GROUP, "widgets"),
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": mutation}],
    }
    install(server, "mutatingadmission", "note", spec, {"matchResources": ONLY_DEFAULT})
    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}}
    code, _, made = server.call("POST", WIDGETS, widget)
    assert (code, made["spec"]) == (201, {"size": 1, "note": "size 1"})

    spec = {
        "matchConstraints": constraints("", "configmaps"),
        "paramKind": {"apiVersion": f"{GROUP}/v1", "kind": "Widget"},
        "validations": [
            {"expression": "size(object.data) <= params.spec.size", "messageExpression": "string(params.spec.note)"}
        ],
    }
    by_name = {"name": "one", "parameterNotFoundAction": "Deny"}
    binding = {"validationActions": ["Deny"], "matchResources": ONLY_DEFAULT, "paramRef": by_name}
    install(server, "validatingadmission", "small", spec, binding)
    path = "/api/v1/namespaces/default/configmaps?dryRun=All"
    assert server.call("POST", path, {"metadata": {"name": "a"}, "data": {"a": "b"}})[0] == 201
    code, _, refused = server.call("POST", path, {"metadata": {"name": "a"}, "data": {"a": "b", "c": "d"}})
    assert (code, refused["message"]) == (
        422,
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'small' denied request: size 1",
    )
    for resource in ("validatingadmissionpolicies/small", "mutatingadmissionpolicies/note"):
        assert server.call("DELETE", f"{POLICIES}/{resource}")[0] == 200
    assert server.call("POST", path, {"metadata": {"name": "a"}, "data": {"a": "b", "c": "d"}})[0] == 201
