"""Admission policies on a real server: params of custom kinds, and custom resources that policies change."""

from __future__ import annotations

import base64

import orjson
import pytest

POLICIES = "/apis/admissionregistration.k8s.io/v1"
GROUP = "policies.example.com"
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "note": {"type": "string"}}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC}}
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
CORE = "/api/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MAP = {"metadata": {"name": "shown"}}
JOB = {**MAP, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}}
CLAIM = {**MAP, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
ONLY_DEFAULT = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}


def establish(server):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    server.establish({"metadata": {"name": f"widgets.{GROUP}"}, "spec": spec})


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


def serve_two_versions(server, group, conversion=None):
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": SCHEMA}}
        for name in ("v1", "v2")
    ]
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": versions,
        **({"conversion": conversion} if conversion else {}),
    }
    server.establish({"metadata": {"name": f"widgets.{group}"}, "spec": spec})


def create_widget(server, group, version, **spec):
    body = {"apiVersion": f"{group}/{version}", "kind": "Widget", "metadata": {"name": "one"}, "spec": spec}
    return server.call("POST", f"/apis/{group}/{version}/namespaces/default/widgets?dryRun=All", body)


def test_policies_see_the_version_they_ask_for(server):
    group = "equivalent.example.com"
    serve_two_versions(server, group)
    mutation = {"expression": "Object{spec: Object.spec{note: object.apiVersion + ' ' + request.resource.version}}"}
    spec = {
        "matchConstraints": constraints(group, "widgets"),
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": mutation}],
    }
    install(server, "mutatingadmission", "versions", spec, {"matchResources": ONLY_DEFAULT})
    rule = {"expression": "request.requestKind.version == 'v1'", "messageExpression": "string(object.apiVersion)"}
    spec = {"matchConstraints": constraints(group, "widgets"), "validations": [rule]}
    binding = {"validationActions": ["Warn"], "matchResources": ONLY_DEFAULT}
    install(server, "validatingadmission", "versions", spec, binding)
    code, headers, made = create_widget(server, group, "v2", size=1)
    assert (code, made["apiVersion"], made["spec"]["note"]) == (201, f"{group}/v2", f"{group}/v1 v1")
    assert f"binding 'versions': {group}/v1" in headers["warning"]
    for resource in ("validatingadmissionpolicies/versions", "mutatingadmissionpolicies/versions"):
        assert server.call("DELETE", f"{POLICIES}/{resource}")[0] == 200


def test_webhooks_see_converted_custom_resources(server, start_peer):
    """Both kinds of webhooks in one peer: conversions note which version they made."""
    group = "converted.example.com"

    def answer(path, review):
        request = review["request"]
        if path.startswith("/convert"):
            wanted = request["desiredAPIVersion"]
            made = []
            for obj in request["objects"]:
                obj["spec"]["note"] = obj["spec"].get("note", "") + ">" + wanted.rpartition("/")[2]
                made.append({**obj, "apiVersion": wanted})
            response = {"uid": request["uid"], "convertedObjects": made, "result": {"status": "Success"}}
            return 200, {**review, "request": None, "response": response}
        patch = [{"op": "add", "path": "/spec/size", "value": 7}]
        encoded = base64.b64encode(orjson.dumps(patch)).decode()
        response = {"uid": request["uid"], "allowed": True, "patch": encoded, "patchType": "JSONPatch"}
        return 200, {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}

    peer = start_peer(answer)
    bundle = base64.b64encode(peer.authority.read_bytes()).decode()

    def client(path):
        return {"url": peer.url + path, "caBundle": bundle}

    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client("/convert")}
    serve_two_versions(server, group, {"strategy": "Webhook", "webhook": webhook})
    hook = {
        "name": "sizes.example.com",
        "clientConfig": client("/admit"),
        "rules": constraints(group, "widgets")["resourceRules"],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = f"{POLICIES}/mutatingwebhookconfigurations"
    code, _, made = server.call("POST", path, {"metadata": {"name": "sizes"}, "webhooks": [hook]})
    assert code == 201, made
    code, _, made = create_widget(server, group, "v2", size=1, note="v2")
    assert server.call("DELETE", f"{path}/sizes")[0] == 200
    seen = next(body["request"] for path, body in peer.requests if path.startswith("/admit"))
    assert (seen["object"]["apiVersion"], seen["object"]["spec"]["note"]) == (f"{group}/v1", "v2>v1")
    assert (seen["kind"]["version"], seen["requestKind"]["version"]) == ("v1", "v2")
    assert (code, made["apiVersion"], made["spec"]["size"]) == (201, f"{group}/v2", 7)
    assert made["spec"]["note"].startswith("v2>v1>v2")


SHOWN = [
    ("DELETE", "", "pods", "string(request.options.gracePeriodSeconds)", "DELETE", f"{CORE}/pods/shown", None, "0"),
    ("CREATE", "batch", "jobs", "string(has(object.metadata.labels))", "POST", JOBS, JOB, "false"),
    (
        "CREATE",
        "",
        "persistentvolumeclaims",
        "string(has(object.status.phase))",
        "POST",
        f"{CORE}/persistentvolumeclaims",
        CLAIM,
        "false",
    ),
    (
        "CREATE",
        "",
        "pods/binding",
        "string(object.metadata.managedFields[0].subresource)",
        "POST",
        f"{CORE}/pods/shown/binding",
        {"metadata": {"name": "shown"}, "target": {"kind": "Node", "name": "n"}},
        "binding",
    ),
    (
        "CREATE",
        "",
        "pods/eviction",
        "string(object.metadata.managedFields[0].subresource)",
        "POST",
        f"{CORE}/pods/shown/eviction",
        {"metadata": {"name": "shown"}, "deleteOptions": {"gracePeriodSeconds": 3}},
        "eviction",
    ),
    (
        "CREATE",
        "",
        "serviceaccounts/token",
        "string(request.options.kind)",
        "POST",
        f"{CORE}/serviceaccounts/shown/token",
        {"spec": {}},
        "CreateOptions",
    ),
    (
        "CONNECT",
        "",
        "pods/proxy",
        "string(has(object.metadata)) + object.path",
        "GET",
        f"{CORE}/pods/shown/proxy/a/b",
        None,
        "false/a/b",
    ),
    (
        "CONNECT",
        "",
        "pods/exec",
        "string(has(object.metadata)) + object.command[0]",
        "GET",
        f"{CORE}/pods/shown/exec?command=ls",
        None,
        "falsels",
    ),
]


@pytest.mark.parametrize(("operation", "group", "resource", "shown", "method", "path", "body", "expected"), SHOWN)
def test_what_admission_is_shown(server, operation, group, resource, shown, method, path, body, expected):
    account, pod = {"metadata": {"name": "shown"}}, {"containers": [{"name": "a", "image": "b"}]}
    for made, content in (
        ("serviceaccounts", account),
        ("configmaps", MAP),
        ("pods", {**account, "spec": {**pod, "serviceAccountName": "shown"}}),
    ):
        assert server.call("POST", f"{CORE}/{made}", content)[0] in (201, 409)
    rules = constraints(group, resource)
    rules["resourceRules"][0]["operations"] = [operation]
    spec = {"matchConstraints": rules, "validations": [{"expression": "false", "messageExpression": shown}]}
    install(server, "validatingadmission", "shown", spec, {"validationActions": ["Deny"]})
    code, _, refused = server.call(method, path, body)
    for kind in ("policybindings", "policies"):
        assert server.call("DELETE", f"{POLICIES}/validatingadmission{kind}/shown")[0] == 200
    assert (code, refused["message"].rpartition("denied request: ")[2]) == (422, expected), refused


def test_mutating_policies_are_shown_the_namespace_of_what_names_none(server):
    assert server.call("POST", f"{CORE}/configmaps", MAP)[0] in (201, 409)
    seen = "Object{metadata: Object.metadata{labels: {'seen': string(has(object.metadata.namespace))}}}"
    rules = constraints("", "configmaps")
    rules["resourceRules"][0]["operations"] = ["UPDATE"]
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": seen}}
    spec = {"matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [mutation]}
    install(server, "mutatingadmission", "seen", spec, {"matchResources": ONLY_DEFAULT})
    code, _, changed = server.call("PUT", f"{CORE}/configmaps/shown", MAP)
    for kind in ("policybindings", "policies"):
        assert server.call("DELETE", f"{POLICIES}/mutatingadmission{kind}/seen")[0] == 200
    assert (code, changed["metadata"]["labels"]) == (200, {"seen": "true"})
