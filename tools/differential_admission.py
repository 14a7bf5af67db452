"""Conversations about what judges objects on their way in, and about what they are given there.

Policies with their bindings and parameters, quotas, addresses of services, and pods that live through binding, status,
resizing, debugging and eviction. Each is in a namespace of its own, so that nothing here touches other conversations.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from differential_answers import Request

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_POLICIES = "/apis/admissionregistration.k8s.io/v1"


def dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def own_space(name: str, **labels: str) -> tuple[str, str, Request]:
    """A namespace for one conversation: its name, its path, and the request that makes it."""
    namespace = f"n-{name}"
    body = {"metadata": {"name": namespace, "labels": {"own": "yes", **labels}}}
    return namespace, f"/api/v1/namespaces/{namespace}", Request("POST", "/api/v1/namespaces", dump(body))


_CONDITIONS = (
    "object.metadata.name == 'b'", "has(object.data)", "object.data.a == 'b'",
    "!has(object.data) || object.data.a != 'b'",
    "size(object.data) < 2", "oldObject == null", "oldObject == null || oldObject.data == object.data",
    "request.operation in ['CREATE', 'DELETE']", "request.userInfo.username == 'admin'", "request.dryRun",
    "request.options.kind == 'CreateOptions'", "namespaceObject.metadata.labels['own'] == 'yes'", "params == null",
    "params.data.most == '1'", "!has(params.data) || object.data.size() <= int(params.data.most)",
    "variables.first == 'a'", "variables.count > 1", "object.data.all(k, k.startsWith('a'))", "object.data['a'] > 'b'",
    "object.metadata.labels.exists(k, k == 'app')", "string(object.data) == ''", "int(object.data.a) > 1", "1 / 0 == 1",
    "quantity(object.data.a).isLessThan(quantity('1'))", "object.metadata.?labels['app'].orValue('x') == 'x'",
    "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
    "authorizer.requestResource.check('delete').reason() == ''", "request.name.matches('^[a-b]+$')",
    "authorizer.path('/healthz').check('get').allowed()", "request.object.metadata.name == 'a'",
    "object.metadata.annotations.size() == 0", "[1, 2][size(object.data)] == 1", "request.resource.resource == 'pods'",
    "request.requestKind.kind == 'ConfigMap'", "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
    "false", "true", "object.metadata.uid == ''", "has(object.metadata.managedFields)",
    "request.subResource == ''", "request.uid != ''",
)  # fmt: skip
_WORDS = (
    "'said ' + object.metadata.name", "object.data.a", "'x' + string(size(object.data))", "''", "'a\\nb'", "'  '",
    "variables.first", "'y'.replace('y', '')", "string(1 / 0)", "params.data.most",
)  # fmt: skip


def policies(choice: random.Random, names: Any) -> list[Request]:
    """Validating policies with bindings, parameters, variables, messages and notes for the audit log."""
    return validating(choice, names, lambda: choice.choice(_CONDITIONS), lambda: choice.choice(_WORDS))


def validating(
    choice: random.Random, names: Any, condition: Callable[[], str], word: Callable[[], str]
) -> list[Request]:
    """The same with expressions of some kind."""
    name = names.name
    namespace, where, made = own_space(name)

    def validation() -> dict[str, Any]:
        found = {"expression": condition()}
        if choice.random() < 0.4:
            found["message"] = choice.choice(("not so", "a: b", "x" * 300))
        if choice.random() < 0.5:
            found["messageExpression"] = word()
        if choice.random() < 0.3:
            found["reason"] = choice.choice(("Forbidden", "Invalid", "Unauthorized", "RequestEntityTooLarge"))
        return found

    probe = {"expression": f"object == null || object.metadata.name != 'probe-{name}'", "message": "in force"}
    spec = {
        "matchConstraints": _matching(choice, namespace),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [
            {"name": "first", "expression": "object.metadata.name"},
            {"name": "count", "expression": "size(object.data)"},
        ],
        "validations": [probe, *(validation() for _ in range(choice.randrange(1, 4)))],
        "failurePolicy": choice.choice(("Fail", "Ignore")),
    }
    if choice.random() < 0.3:
        spec["matchConditions"] = [
            {"name": "when", "expression": f"object == null || object.metadata.name != 'skip-{name}'"}
        ]
    if choice.random() < 0.4:
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": choice.choice(("'v'", "null", "object.data.a"))}]
    actions = choice.choice((["Deny"], ["Deny"], ["Deny", "Audit"], ["Warn", "Audit"], ["Warn"]))
    if actions[0] != "Deny":
        spec["validations"] = spec["validations"][1:]  # the probe would never be refused
    return _judged(choice, name, (namespace, where, made), spec, {"validationActions": actions}, "validating")


_MUTATIONS = (
    "Object{data: {'b': 'set'}}", "Object{metadata: Object.metadata{labels: {'l': object.metadata.name}}}", "Object{}",
    "has(object.data) ? Object{data: {'n': string(size(object.data))}} : Object{}",
    "Object{data: {'a': object.data.a}}",
    "Object{metadata: Object.metadata{annotations: {'p': params.data.most}}}", "Object{data: {'x': variables.first}}",
    "Object{metadata: Object.metadata{name: 'other'}}", "Object{metadata: Object.metadata{finalizers: ['a.b/c']}}",
    "Object{immutable: true}", "Object{binaryData: {'b': b'x'}}",
)  # fmt: skip
_PATCHES = (
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'l': 'm'}}]", "[]",
    "[JSONPatch{op: 'test', path: '/data/a', value: 'b'}, JSONPatch{op: 'replace', path: '/data/a', value: 'c'}]",
    "[JSONPatch{op: 'remove', path: '/data/a'}]", "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/copied'}]",
    "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x~y'), value: 'z'}]",
    "[JSONPatch{op: 'add', path: '/data', value: {'k': variables.first}}]",
    "[JSONPatch{op: 'move', path: '/data/q', from: '/data/a'}]",
    "has(object.data) ? [JSONPatch{op: 'add', path: '/data/h', value: 'i'}] : []",
    "[JSONPatch{op: 'add', path: '/nobody', value: 1}]", "[JSONPatch{op: 'add', path: '/data/n', value: 1}]",
)  # fmt: skip


def mutations(choice: random.Random, names: Any) -> list[Request]:
    """Mutating policies, by apply configurations and JSON patches, one after the other."""
    return mutating(choice, names, lambda: choice.choice(_MUTATIONS), lambda: choice.choice(_PATCHES))


def mutating(
    choice: random.Random, names: Any, configuration: Callable[[], str], patch: Callable[[], str]
) -> list[Request]:
    """The same with expressions of some kind."""
    name = names.name
    namespace, where, made = own_space(name)

    def mutation() -> dict[str, Any]:
        if choice.random() < 0.5:
            kind, key, expression = "ApplyConfiguration", "applyConfiguration", configuration()
        else:
            kind, key, expression = "JSONPatch", "jsonPatch", patch()
        return {"patchType": kind, key: {"expression": expression}}

    marked = f"object.metadata.name == 'probe-{name}' ? Object{{data: {{'probe': 'in force'}}}} : Object{{}}"
    probe = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": marked}}
    spec = {
        "matchConstraints": _matching(choice, namespace, ("CREATE", "UPDATE")),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "first", "expression": "object.metadata.name"}],
        "mutations": [probe, *(mutation() for _ in range(choice.randrange(1, 3)))],
        "failurePolicy": choice.choice(("Fail", "Ignore")),
        "reinvocationPolicy": choice.choice(("Never", "IfNeeded")),
        "matchConditions": [{"name": "c", "expression": "!object.metadata.name.startsWith('skip')"}],
    }
    return _judged(choice, name, (namespace, where, made), spec, {}, "mutating")


def _matching(
    choice: random.Random, namespace: str, operations: tuple[str, ...] = ("CREATE", "UPDATE", "DELETE")
) -> Any:
    some = list(operations) if choice.random() < 0.7 else ["CREATE"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": some, "resources": ["configmaps"]}
    return {
        "resourceRules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": choice.choice(({}, {}, {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]})),
    }


def _judged(
    choice: random.Random, name: str, space: tuple[str, str, Request], spec: Any, more: dict[str, Any], kind: str
) -> list[Request]:
    """A policy and its binding, objects that it judges, and the end of it."""
    namespace, where, made = space
    policy, binding = f"{_POLICIES}/{kind}admissionpolicies", f"{_POLICIES}/{kind}admissionpolicybindings"
    maps, parameter = f"{where}/configmaps", {"metadata": {"name": "params"}, "data": {"most": choice.choice("12a")}}
    bound = {"policyName": name, "matchResources": {}, **more}
    bound["paramRef"] = {
        "name": choice.choice(("params",) * 5 + ("none",)),
        "namespace": choice.choice((namespace, namespace, "")),
        "parameterNotFoundAction": choice.choice(("Deny", "Allow")),
    }
    if not bound["paramRef"]["namespace"]:
        del bound["paramRef"]["namespace"]
    probed = Request("POST", f"{maps}?dryRun=All", dump({"metadata": {"name": f"probe-{name}"}}), awaits="in force")
    said = [
        made,
        Request("POST", maps, dump(parameter)),
        Request("POST", policy, dump({"metadata": {"name": name}, "spec": spec})),
        Request("POST", binding, dump({"metadata": {"name": name}, "spec": bound})),
        probed,
    ]
    for number in range(4):
        data = {
            key: choice.choice(("a", "b", "1", "5", "")) for key in choice.sample(("a", "ab", "c"), choice.randrange(3))
        }
        body: dict[str, Any] = {"metadata": {"name": choice.choice(("a", "b", f"o{number}", f"skip-{name}"))}}
        body |= {"data": data} if data else {}
        body["metadata"] |= choice.choice(
            ({}, {"labels": {"app": "x"}}, {"labels": {"no": "x"}}, {"annotations": {"a": "b"}})
        )
        query = choice.choice(("", "", "?dryRun=All", "?fieldManager=m"))
        said.append(Request("POST", maps + query, dump(body)))
        patch = choice.choice(
            ({"data": {"a": choice.choice(("b", "2", None))}}, {"metadata": {"labels": {"app": "y"}}}, {})
        )
        said.append(Request("PATCH", f"{maps}/{body['metadata']['name']}", dump(patch), MERGE))
        if choice.random() < 0.4:
            applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"z": "1"}}
            said.append(Request("PATCH", f"{maps}/{body['metadata']['name']}?fieldManager=z", dump(applied), APPLY))
        if choice.random() < 0.5:
            said.append(Request("DELETE", f"{maps}/{body['metadata']['name']}"))
    ends = [Request("DELETE", f"{binding}/{name}"), Request("DELETE", f"{policy}/{name}")]
    return [*said, Request("GET", maps), Request("GET", f"{policy}/{name}"), *ends]


_HARD = (
    "pods", "count/pods", "count/configmaps", "configmaps", "services", "services.nodeports", "services.loadbalancers",
    "requests.cpu", "limits.cpu", "cpu", "memory", "limits.memory", "requests.storage", "persistentvolumeclaims",
    "gold.storageclass.storage.k8s.io/requests.storage", "count/deployments.apps", "requests.example.com/gpu",
    "secrets",    "requests.ephemeral-storage", "count/things.differ.example", "count/widgets.nobody.example",
    "resourcequotas",
)  # fmt: skip
_SCOPES = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass", "CrossNamespacePodAffinity")


def quotas(choice: random.Random, names: Any) -> list[Request]:
    """A quota whose status is known, with scopes, and what it lets pass and refuses. Of two, any may refuse first."""
    namespace, where, made = own_space(names.name)
    amounts = ("0", "1", "2", "1500m", "1Gi")
    hard = {each: choice.choice(amounts) for each in choice.sample(_HARD, choice.randrange(1, 6))}
    spec: dict[str, Any] = {"hard": hard}
    if choice.random() < 0.3:
        spec["scopes"] = [choice.choice(_SCOPES)]
    if choice.random() < 0.15:
        operator = choice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        rule = {"scopeName": choice.choice(_SCOPES), "operator": operator, "values": ["a"]}
        spec["scopeSelector"] = {"matchExpressions": [rule]}
    known = {"hard": hard, "used": {each: "0" for each in hard if choice.random() < 0.95}}
    quota = {"metadata": {"name": "q"}, "spec": spec}
    said = [
        made,
        Request("POST", f"{where}/resourcequotas", dump(quota), unordered=True),
        Request("PATCH", f"{where}/resourcequotas/q/status", dump({"status": known}), MERGE),
    ]
    for number in range(4):
        said += _spend(choice, namespace, f"o{number}")
    gone = [Request("DELETE", f"{where}/services/o{number}") for number in range(4)]  # for others need addresses, too
    return [*said, Request("GET", f"{where}/resourcequotas/q"), *gone]


def _spend(choice: random.Random, namespace: str, name: str) -> list[Request]:
    """Make something that counts, and perhaps change it or take it away again."""
    where = f"/api/v1/namespaces/{namespace}"

    def some() -> dict[str, str]:
        kinds = choice.sample(("cpu", "memory", "example.com/gpu"), choice.randrange(3))
        return {each: choice.choice(("1", "500m", "2")) for each in kinds}

    pod: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": some(), "limits": some()}}]
    }
    pod |= choice.choice(({}, {}, {"activeDeadlineSeconds": 5}))
    service = {"ports": [{"port": 80}], "type": choice.choice(("ClusterIP", "NodePort", "LoadBalancer"))}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": choice.choice(("1Gi", "1"))}}}
    claim |= choice.choice(({}, {"storageClassName": "gold"}))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": pod["containers"]}}
    path, spec = choice.choice(
        (
            (f"{where}/pods", pod),
            (f"{where}/pods", pod),
            (f"{where}/services", service),
            (f"{where}/persistentvolumeclaims", claim),
            (f"{where}/configmaps", None),
            (f"{where}/secrets", None),
            (
                f"/apis/apps/v1/namespaces/{namespace}/deployments",
                {"selector": {"matchLabels": {"a": "b"}}, "template": template},
            ),
        )
    )
    body = {"metadata": {"name": name}, **({} if spec is None else {"spec": spec})}
    said = [Request("POST", path + choice.choice(("", "", "?dryRun=All")), dump(body), unordered=True)]
    if spec is service and choice.random() < 0.5:
        said.append(Request("PATCH", f"{path}/{name}", dump({"spec": {"type": "NodePort"}}), MERGE, unordered=True))
    if choice.random() < 0.3:
        said.append(Request("DELETE", f"{path}/{name}?gracePeriodSeconds=0"))
    return said


def addresses(choice: random.Random, names: Any) -> list[Request]:
    """Services with addresses and ports of their own choice: free, taken, out of range, of the wrong family."""
    _, where, made = own_space(names.name)
    mine = int(names.namespace[-1])
    # Of those that are not given out at random, so that nobody else in here has them.
    free, port = f"10.0.0.{2 + mine}", 30000 + mine
    said = [made]
    for at in range(3):
        ports = [
            {"name": f"p{n}", "port": 80 + n, "protocol": choice.choice(("TCP", "TCP", "UDP"))}
            for n in range(choice.randrange(1, 3))
        ]
        for each in ports:
            if choice.random() < 0.3:
                each["nodePort"] = choice.choice((port, port, 80, 32768, 0, 70000))
        spec: dict[str, Any] = {
            "ports": ports,
            "type": choice.choice(("ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName")),
        }
        if choice.random() < 0.5:
            spec["clusterIP"] = choice.choice(
                (free, free, "10.0.0.1", "10.0.0.0", "10.0.0.255", "192.0.2.1", "None", "::1", "x", "")
            )
        if choice.random() < 0.2:
            spec["clusterIPs"] = choice.choice(([free], ["None"], [free, "fd00::1"], ["10.0.0.1"], []))
        if choice.random() < 0.3:
            spec["ipFamilyPolicy"] = choice.choice(("SingleStack", "PreferDualStack", "RequireDualStack", "Other"))
        if choice.random() < 0.2:
            spec["ipFamilies"] = choice.choice((["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv4", "IPv4"]))
        if spec["type"] == "ExternalName":
            spec["externalName"] = "a.example"
        if choice.random() < 0.2:
            spec |= {"externalTrafficPolicy": "Local", "healthCheckNodePort": choice.choice((port, 0, 80))}
        body = {"metadata": {"name": f"s{at}"}, "spec": spec}
        query = choice.choice(("", "", "", "?dryRun=All"))
        said.append(Request("POST", f"{where}/services{query}", dump(body), unordered=True))
        change = choice.choice(
            (
                {"type": choice.choice(("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"))},
                {"clusterIP": None},
                {"clusterIP": choice.choice((free, "10.0.0.1", "None", ""))},
                {"ports": [{"port": 90, "nodePort": port}]},
                {"ipFamilyPolicy": "PreferDualStack"},
                {"type": "ExternalName", "externalName": "b.example", "clusterIP": ""},
                {"type": "ExternalName", "externalName": "b.example", "clusterIP": "", "clusterIPs": None},
            )
        )
        said.append(
            Request(
                "PATCH",
                f"{where}/services/s{at}{query}",
                dump({"spec": change}),
                choice.choice((MERGE, STRATEGIC)),
                unordered=True,
            )
        )
    said += [Request("DELETE", f"{where}/services/s{at}") for at in range(3)]
    return said


ADMISSION_AREAS = {
    "policies": policies,
    "mutations": mutations,
    "quotas": quotas,
    "addresses": addresses,
}
