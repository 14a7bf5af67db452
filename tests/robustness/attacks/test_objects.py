"""Objects and patches with very many of something, and reads that multiply what is stored."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from http.client import HTTPSConnection
from typing import Any

import orjson
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/clusterroles"
BINDINGS = f"/apis/{RBAC}/v1/clusterrolebindings"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
ANSWERED = (200, 201, 400, 403, 409, 413, 422, 500)
"""Refused or not: what matters is what it costs."""


def of(version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "attack"}, **fields}


def review(group: str, kind: str, **spec: Any) -> dict[str, Any]:
    """Reviews have no names, and are refused with one before anybody looks at the rest."""
    return {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}


def in_default(group: str, resource: str) -> str:
    root = "/api/v1" if not group else f"/apis/{group}"
    return f"{root}/namespaces/default/{resource}"


SUBJECT = {"kind": "User", "apiGroup": RBAC}
OBJECTS: list[tuple[str, str, dict[str, Any]]] = [
    ("a config map with 50,000 keys", MAPS, of("v1", "ConfigMap", data={f"k{n}": "" for n in range(50_000)})),
    (
        "a secret with 25,000 keys",
        in_default("", "secrets"),
        of("v1", "Secret", data={f"k{n}": "YQ==" for n in range(25_000)}),
    ),
    (
        "endpoints with 30,000 addresses",
        in_default("", "endpoints"),
        of(
            "v1",
            "Endpoints",
            subsets=[{"addresses": [{"ip": f"10.{n >> 8 & 255}.{n & 255}.1"} for n in range(30_000)]}],
        ),
    ),
    (
        "a slice with 40,000 endpoints",
        in_default("discovery.k8s.io/v1", "endpointslices"),
        of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["1.2.3.4"]}] * 40_000),
    ),
    (
        "a quota with 100,000 scopes",
        in_default("", "resourcequotas"),
        of("v1", "ResourceQuota", spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"] * 100_000}),
    ),
    (
        "a quota of 20,000 resources",
        in_default("", "resourcequotas"),
        of("v1", "ResourceQuota", spec={"hard": {f"count/r{n}.example": "1" for n in range(20_000)}}),
    ),
    (
        "a quota with 10,000 expressions over scopes",
        in_default("", "resourcequotas"),
        of(
            "v1",
            "ResourceQuota",
            spec={
                "hard": {"pods": "1", "services": "1", **{f"count/r{n}.example": "1" for n in range(2_000)}},
                "scopeSelector": {"matchExpressions": [{"scopeName": "Terminating", "operator": "Exists"}] * 10_000},
            },
        ),
    ),
    (
        "a limit range with 10,000 limits",
        in_default("", "limitranges"),
        of("v1", "LimitRange", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}] * 10_000}),
    ),
    (
        "an ingress with 10,000 hosts",
        in_default("networking.k8s.io/v1", "ingresses"),
        of("networking.k8s.io/v1", "Ingress", spec={"rules": [{"host": f"h{n}.example"} for n in range(10_000)]}),
    ),
    (
        "a role with 30,000 rules",
        ROLES,
        of(f"{RBAC}/v1", "ClusterRole", rules=[{"apiGroups": [""], "resources": ["x"], "verbs": ["get"]}] * 30_000),
    ),
    (
        "a binding of 30,000 subjects",
        BINDINGS,
        of(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
            subjects=[{**SUBJECT, "name": f"u{n}"} for n in range(30_000)],
        ),
    ),
    (
        "a request for a certificate of 1 MB",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        of(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            spec={
                "request": base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"A" * 1_000_000).decode(),
                "signerName": "a.b/c",
                "usages": ["client auth"] * 10_000,
            },
        ),
    ),
    (
        "a token for 50,000 audiences",
        in_default("", "serviceaccounts/default/token"),
        of("authentication.k8s.io/v1", "TokenRequest", spec={"audiences": [f"a{n}" for n in range(50_000)]}),
    ),
    (
        "a review of a token for 50,000 audiences",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        review("authentication.k8s.io", "TokenReview", token="x", audiences=[f"a{n}" for n in range(50_000)]),
    ),
    (
        "a review of access with 50,000 groups",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            user="a",
            groups=[f"g{n}" for n in range(50_000)],
            resourceAttributes={"verb": "get", "resource": "pods"},
        ),
    ),
    (
        "a webhook configuration of 2,000",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        of(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            webhooks=[
                {
                    "name": f"w{n}.b.c",
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "rules": [
                        {"operations": ["CREATE"], "apiGroups": ["n"], "apiVersions": ["v1"], "resources": ["n"]}
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "failurePolicy": "Ignore",
                    "matchConditions": [{"name": "m", "expression": f"{n} == {n}"}],
                }
                for n in range(2_000)
            ],
        ),
    ),
    (
        "a policy of 2,500 expressions",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        of(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            spec={
                "matchConstraints": {
                    "resourceRules": [
                        {"operations": ["CREATE"], "apiGroups": ["n"], "apiVersions": ["v1"], "resources": ["n"]}
                    ]
                },
                "validations": [{"expression": f"object.metadata.name != 'n{n}'"} for n in range(2_500)],
            },
        ),
    ),
    (
        "a service with more ports than there are node ports",
        in_default("", "services"),
        of(
            "v1",
            "Service",
            spec={"type": "NodePort", "ports": [{"name": f"p{n}", "port": n + 1} for n in range(9_000)]},
        ),
    ),
    (
        "a dry run of a service with 30,000 ports",
        in_default("", "services") + "?dryRun=All",
        of("v1", "Service", spec={"type": "NodePort", "ports": [{"port": n + 1} for n in range(30_000)]}),
    ),
    (
        "a review with 15,000 requirements",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            user="u",
            resourceAttributes={
                "resource": "pods",
                "labelSelector": {
                    "requirements": [{"key": f"k{n}", "operator": "In", "values": ["a"] * 10} for n in range(15_000)]
                },
            },
        ),
    ),
    (
        "managed fields of 2 MB",
        MAPS,
        {
            **of("v1", "ConfigMap"),
            "metadata": {
                "name": "managed",
                "managedFields": [
                    {
                        "manager": f"m{n}",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {f"f:k{k}": {} for k in range(100)}},
                    }
                    for n in range(1_500)
                ],
            },
        },
    ),
    (
        "owner references and annotations",
        MAPS,
        {
            **of("v1", "ConfigMap"),
            "metadata": {"name": "notes", "annotations": {f"a.example/n{n}": "v" for n in range(60_000)}},
        },
    ),
]


@pytest.mark.parametrize(("what", "path", "body"), OBJECTS, ids=[what for what, _, _ in OBJECTS])
def test_large_objects(victim: Any, what: str, path: str, body: dict[str, Any]) -> None:
    size = len(orjson.dumps(body))
    with victim.attacked(f"{what}, {size >> 10} KB", allowance=max(48 << 20, 20 * size)):
        assert victim.call("POST", path, body).status in ANSWERED
        if "metadata" in body:
            whole = path.partition("?")[0]
            assert victim.call("DELETE", f"{whole}/{body['metadata']['name']}").status in (200, 404)


@pytest.fixture(scope="module")
def patched(victim: Any) -> str:
    containers = [{"name": f"c{n}", "image": "i"} for n in range(200)]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    path = in_default("apps/v1", "deployments")
    assert victim.call("POST", path, of("apps/v1", "Deployment", spec=spec)).status == 201
    return f"{path}/attack"


def containers(items: list[Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": items}}}}


def deep(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = {"a": value}
    return value


PATCHES: list[tuple[str, str, Any]] = [
    ("40,000 directives", STRATEGIC, containers([{"$patch": "delete", "name": f"c{n}"} for n in range(40_000)])),
    ("one key 40,000 times", STRATEGIC, containers([{"name": "c1", "image": str(n)} for n in range(40_000)])),
    (
        "primitives to delete",
        STRATEGIC,
        {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"a.b/f{n}" for n in range(100_000)]}},
    ),
    (
        "an order of 100,000",
        STRATEGIC,
        containers([])
        | {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": f"c{n}"} for n in range(60_000)]}}}},
    ),
    ("maps to retain", STRATEGIC, {"spec": {"$retainKeys": [f"k{n}" for n in range(100_000)]}}),
    (
        "9,000 tests",
        JSON_PATCH,
        [{"op": "test", "path": "/spec/template/spec/containers/199/name", "value": "c199"}] * 9_000,
    ),
    ("9,000 moves", JSON_PATCH, [{"op": "move", "from": "/metadata/labels", "path": "/metadata/labels"}] * 9_000),
    ("9,000 insertions", JSON_PATCH, [{"op": "add", "path": "/spec/template/spec/containers/0", "value": {}}] * 9_000),
    ("a pointer of 1 MB", JSON_PATCH, [{"op": "add", "path": "/a" * 500_000, "value": 1}]),
    ("escapes in a pointer", JSON_PATCH, [{"op": "test", "path": "/" + "~1~0" * 250_000, "value": 1}]),
    (
        "copies of a value into itself",
        JSON_PATCH,
        [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
        + [{"op": "copy", "from": "/metadata", "path": "/metadata/annotations/b"}] * 60,
    ),
    ("nulls", MERGE, {"metadata": {"annotations": {f"k{n}": None for n in range(150_000)}}}),
    (
        "100,000 keys beside a wrong type",
        MERGE,
        {"spec": 1, "metadata": {"labels": {f"k{n}": "" for n in range(100_000)}}},
    ),
    (
        "100,000 keys 200 deep beside a wrong type",
        MERGE,
        {"spec": 1, "x": deep({f"k{n}": {} for n in range(100_000)}, 200)},
    ),
]


@pytest.mark.parametrize(("what", "kind", "patch"), PATCHES, ids=[what for what, _, _ in PATCHES])
def test_patches(victim: Any, patched: str, what: str, kind: str, patch: Any) -> None:
    size = len(orjson.dumps(patch))
    with victim.attacked(f"a patch: {what}, {size >> 10} KB", allowance=max(64 << 20, 20 * size)):
        assert victim.call("PATCH", patched, patch, kind).status in ANSWERED


def test_many_managers(victim: Any) -> None:
    """An object that 60 managers apply to: each further one reads what all others own."""
    connection = HTTPSConnection("127.0.0.1", victim.port, timeout=120, context=victim.contexts[False])
    with victim.attacked("60 managers of one object"):
        for number in range(60):
            body = {**of("v1", "ConfigMap"), "data": {f"k{number}-{key}": "v" for key in range(20)}}
            body["metadata"] = {"name": "managers"}
            path = f"{MAPS}/managers?fieldManager=m{number}&force=true"
            connection.request("PATCH", path, orjson.dumps(body), {"Content-Type": APPLY})
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 201)
    connection.close()


def many(victim: Any, count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def crowded(crowd: Callable[[str, int], None]) -> str:
    """The path of a list of many small objects."""
    crowd("crowded", 1_500)
    return "/api/v1/namespaces/crowded/configmaps"


def test_tables_with_objects(victim: Any, crowded: str) -> None:
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"

    def work() -> None:
        assert victim.call("GET", f"{crowded}?includeObject=Object", accept=table).status == 200

    with victim.attacked("tables of 1,500 objects, eight at once", allowance=96 << 20):
        many(victim, 8, work)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_rows_that_are_made_as_they_are_sent(fresh: Any, coding: str) -> None:
    """None is kept yet, and once they are compressed hardly anything is left of rows that are nearly the same."""
    fresh.server.namespace("rows")
    connection = HTTPSConnection("127.0.0.1", fresh.port, timeout=120, context=fresh.contexts[False])
    for number in range(8_000):
        body = orjson.dumps({**of("v1", "ConfigMap"), "metadata": {"name": f"m{number}"}})
        connection.request("POST", "/api/v1/namespaces/rows/configmaps", body, {"Content-Type": "application/json"})
        assert connection.getresponse().read()
    headers = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1", "Accept-Encoding": coding}
    with fresh.attacked(f"a table of 8,000 objects, {coding}"):
        connection.request("GET", "/api/v1/namespaces/rows/configmaps?includeObject=None", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(answer.read()) > 10_000
    connection.close()


@pytest.fixture(scope="module")
def large_secrets(victim: Any) -> str:
    """The path of a list of eight objects of a megabyte each."""
    victim.server.namespace("large")
    path = "/api/v1/namespaces/large/secrets"
    for number in range(8):
        data = {f"k{key}": "v" * 20 for key in range(20_000)}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}"}, "stringData": data}
        assert victim.call("POST", path, body).status == 201
    return path


@pytest.mark.parametrize(
    "accept",
    [
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
    ],
)
def test_lists_of_large_objects(victim: Any, large_secrets: str, accept: str) -> None:
    with victim.attacked(f"8 objects of 1 MB as {accept[12:40]}", allowance=160 << 20):
        assert victim.call("GET", large_secrets, accept=accept).status == 200


def test_initial_events_for_many(victim: Any, crowded: str) -> None:
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2"

    def work() -> None:
        assert victim.call("GET", f"{crowded}?{query}").status == 200

    with victim.attacked("initial events of 1,500 objects, 8 at once", allowance=96 << 20):
        many(victim, 8, work)


def test_watches_of_a_large_object(victim: Any) -> None:
    """Each event has to be made for each form that somebody watches in."""
    path, merge = "/api/v1/namespaces/default/configmaps", "application/merge-patch+json"
    data = {f"k{number}": "v" * 20 for number in range(24_000)}
    watched = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "watched"}, "data": data}
    assert victim.call("POST", path, watched).status == 201
    forms = ["as=Table;v=v1;g=meta.k8s.io", "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"]
    accepts = [*(f"application/json;{form}" for form in forms), "application/vnd.kubernetes.protobuf;stream=watch"]
    found: list[int] = []

    def watch(accept: str) -> None:
        asked = f"{path}?watch=1&includeObject=Object&fieldSelector=metadata.name%3Dwatched&timeoutSeconds=4"
        found.append(len(victim.call("GET", asked, accept=accept).body))

    with victim.attacked("watches of an object of 800 KB in other forms", allowance=100 << 20):
        threads = [threading.Thread(target=watch, args=(accept,)) for accept in accepts]
        for thread in threads:
            thread.start()
        for number in range(3):
            assert victim.call("PATCH", f"{path}/watched", {"data": {"k1": str(number)}}, merge).status == 200
        for thread in threads:
            thread.join()
    assert min(found) > 200
    assert victim.call("DELETE", f"{path}/watched").status == 200
