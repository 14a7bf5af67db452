"""Bodies of less than 16 KB, which is little, with thousands of values in them, which is much."""

from __future__ import annotations

from http.client import HTTPSConnection
from typing import Any

import orjson
import pytest
from tests.robustness.attacks.second_client import processor_seconds

from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.protobuf.envelope import wrap
from pilothouse.machinery.protobuf.wire import delimited

CORE = "/api/v1/namespaces/default"
GROUP = "admissionregistration.k8s.io"
COUNT = 5_000


def pod(**spec: Any) -> dict[str, Any]:
    given = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attack"}, "spec": given}


def mounting(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("containers without anything", f"{CORE}/pods", pod(containers=[{}] * COUNT)),
    ("mounts of nothing", f"{CORE}/pods", mounting(volumeMounts=[{}] * COUNT)),
    ("devices of nothing", f"{CORE}/pods", mounting(volumeDevices=[{}] * COUNT)),
    (
        "items of a secret",
        f"{CORE}/pods",
        pod(volumes=[{"name": "v", "secret": {"secretName": "s", "items": [{}] * COUNT}}]),
    ),
    (
        "rules of a policy",
        f"/apis/{GROUP}/v1/validatingadmissionpolicies",
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "attack"},
            "spec": {"matchConstraints": {"excludeResourceRules": [{}] * COUNT}},
        },
    ),
]


@pytest.fixture(scope="module", autouse=True)
def account(victim: Any) -> None:
    """Pods are looked at only where there is an account for them."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert victim.call("POST", f"{CORE}/serviceaccounts", body).status in (201, 409)


@pytest.mark.parametrize(("what", "path", "body"), BODIES, ids=[what for what, _, _ in BODIES])
def test_many_short_values(victim: Any, what: str, path: str, body: dict[str, Any]) -> None:
    assert len(orjson.dumps(body)) < 16 * 1024
    with victim.attacked(f"16 KB: {what}"):
        for _ in range(3):
            assert victim.call("POST", path, body).status in (201, 409, 422)


def test_a_review_by_somebody_without_a_role(victim: Any) -> None:
    """Anybody may ask what he may do, and be told 5,000 times what is wrong with the question."""
    attributes = {"resource": "pods", "labelSelector": {"requirements": [{}] * COUNT}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body = {**review, "spec": {"resourceAttributes": attributes}}
    assert len(orjson.dumps(body)) < 16 * 1024
    with victim.attacked("16 KB: requirements of a review"):
        for _ in range(3):
            answer = victim.call(
                "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, user="somebody"
            )
            assert answer.status == 422


def test_a_pod_with_its_containers_in_another_order(victim: Any) -> None:
    """It is refused with a diff, which takes longest where lines occur often, but not in each hundredth line."""
    like = {
        "image": "i",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
        "securityContext": {"runAsUser": 1, "capabilities": {"add": ["A"]}},
    }
    containers = [{"name": f"c{number}", **like} for number in range(800)]
    made = pod(containers=containers, volumes=[{"name": "v", "emptyDir": {}}])
    answer = victim.call("POST", f"{CORE}/pods", made)
    assert answer.status == 201
    changed = answer.json
    changed["spec"]["containers"].reverse()
    try:
        with victim.attacked("800 containers in another order"):
            answer = victim.call("PUT", f"{CORE}/pods/attack", changed)
        assert answer.status == 422
        assert "pod updates may not change fields other than" in answer.json["message"]
    finally:
        assert victim.call("DELETE", f"{CORE}/pods/attack?gracePeriodSeconds=0").status == 200


PATTERNS: list[tuple[str, dict[str, Any]]] = [
    (
        "zeros of a quantity",
        pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "0" * 1_500 + "x"}}}]),
    ),
    ("beginnings of an initiator", pod(volumes=[{"name": "v", "iscsi": {"initiatorName": "iqn.2000-01." * 12_000}}])),
]


@pytest.mark.parametrize(("what", "body"), PATTERNS, ids=[what for what, _ in PATTERNS])
def test_texts_that_patterns_go_back_in(victim: Any, what: str, body: dict[str, Any]) -> None:
    """A pattern that tries all ways to share a text keeps the interpreter's lock, and everybody waits."""
    worked = processor_seconds(victim.server.process.pid)
    before = worked()
    with victim.attacked(what):
        assert victim.call("POST", f"{CORE}/pods", body).status in (400, 422)
    assert worked() - before < 5


def test_blanks_in_a_range(victim: Any) -> None:
    context = victim.contexts[False]
    worked = processor_seconds(victim.server.process.pid)
    before = worked()
    with victim.attacked("90,000 blanks in a range"):
        for value in ("bytes=" + "\t" * 90_000 + "!", "bytes=" + "1" * 5_000 + "-"):
            connection = HTTPSConnection("127.0.0.1", victim.port, timeout=120, context=context)
            connection.request("GET", "/openapi/v2", headers={"Range": value, "Impersonate-User": "somebody"})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            assert answer.status == 416
    assert worked() - before < 5


@pytest.mark.parametrize("opening", [b"[", b"{", b"? "])
def test_deep_yaml_of_somebody_without_a_role(victim: Any, opening: bytes) -> None:
    """For each event libyaml looks at all levels of what is open."""
    closing = {b"[": b"]", b"{": b"}"}.get(opening, b"")
    head = b"apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: "
    body = head + (b"" if closing else b"\n") + opening * 7_500 + closing * 7_500
    assert len(body) < 16 * 1024
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    with victim.attacked(f"16 KB: deep YAML of {opening.decode()}"):
        for _ in range(3):
            assert victim.call("POST", path, body, "application/yaml", user="somebody").status == 400


NOTHING = [{}] * 300_000
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MEGABYTES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "requirements of a review, by anybody",
        REVIEW,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"labelSelector": {"requirements": NOTHING}}},
        },
    ),
    (
        "ports of a service",
        f"{CORE}/services",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "attack"}, "spec": {"ports": NOTHING[:100_000]}},
    ),
    (
        "limits",
        f"{CORE}/limitranges",
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "attack"}, "spec": {"limits": NOTHING}},
    ),
]


@pytest.mark.parametrize(("what", "path", "body"), MEGABYTES, ids=[what for what, _, _ in MEGABYTES])
def test_a_megabyte_of_nothing(fresh: Any, what: str, path: str, body: dict[str, Any]) -> None:
    """Each item is several errors, and an error takes a hundred times as much as the item."""
    with fresh.attacked(f"a megabyte of empty {what}", allowance=110 << 20):
        assert fresh.call("POST", path, body, user="nobody" if path == REVIEW else "").status == 422


PROTOBUF = "application/vnd.kubernetes.protobuf"


def test_more_containers_than_can_be_stored(fresh: Any) -> None:
    """Three bytes each, or two: with what is filled in and said of them they take five hundred."""
    message = delimited(b"\n", b"\n\6attack") + delimited(b"\x12", b"\x12\0" * 400_000)
    bodies = [
        (orjson.dumps(pod(containers=[{}] * 400_000)), "application/json"),
        (wrap(GroupVersionKind("", "v1", "Pod"), message), "application/vnd.kubernetes.protobuf"),
    ]
    with fresh.attacked("400,000 containers", allowance=48 << 20):
        for body, kind in bodies:
            answer = fresh.call("POST", f"{CORE}/pods", body, kind)
            assert (answer.status, answer.json["message"]) == (500, "etcdserver: request is too large")


EAGER = (
    "AlwaysPullImages,DefaultTolerationSeconds,ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,"
    "PodSecurity,PodTolerationRestriction,ResourceQuota,RuntimeClass,ServiceAccount"
)


@pytest.fixture(scope="module")
def eager(launch_victim: Any) -> Any:
    """A server with all that looks at each part of a pod, in a namespace that restricts it."""
    started = launch_victim(f"--enable-admission-plugins={EAGER}")
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "warn")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": restricted}}
    assert started.call("POST", "/api/v1/namespaces", namespace).status == 201
    enforced = {"kubernetes.io/enforce-mountable-secrets": "true"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "annotations": enforced}}
    assert started.call("POST", f"{STRICT}/serviceaccounts", account).status == 201
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    quota["spec"] = {"hard": {"pods": "9", "count/pods": "9"}}
    assert started.call("POST", f"{STRICT}/resourcequotas", quota).status == 201
    tolerations = [{"key": "k", "operator": "Exists"}]
    tolerating = {"handler": "h", "metadata": {"name": "c"}, "scheduling": {"tolerations": tolerations}}
    tolerating |= {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    assert started.call("POST", "/apis/node.k8s.io/v1/runtimeclasses", tolerating).status == 201
    return started


STRICT = "/api/v1/namespaces/strict"
USUAL = [{"name": "c", "image": "i"}]
LONG_PARTS: list[tuple[str, dict[str, Any]]] = [
    ("containers", {"containers": [{}] * 60_000}),
    ("init containers", {"containers": USUAL, "initContainers": [{}] * 60_000}),
    ("volumes", {"containers": USUAL, "volumes": [{"name": f"v{number}"} for number in range(60_000)]}),
    (
        "tolerations",
        {
            "containers": USUAL,
            "runtimeClassName": "c",
            "tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(5_000)],
        },
    ),
]


@pytest.mark.parametrize(("what", "spec"), LONG_PARTS, ids=[what for what, _ in LONG_PARTS])
def test_admission_of_pods_of_many_parts(eager: Any, what: str, spec: dict[str, Any]) -> None:
    """A dozen plug-ins go through all of them; tolerations were compared each with each."""
    with eager.attacked(f"admission of many {what}", allowance=128 << 20):
        for _ in range(2):
            assert eager.call("POST", f"{STRICT}/pods", pod(**spec)).status in (201, 403, 409, 422)
