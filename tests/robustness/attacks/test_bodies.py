"""Bodies near the size limit: broken ones, ones that nobody may send, and ones with very many of something."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "attack", **metadata}}


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("an unfinished string", lambda: b'{"data":{"a":"' + b"x" * 2_900_000),
        ("an unfinished list", lambda: b'{"data":[' + b"1," * 1_400_000),
        ("deep lists", lambda: b'{"data":' + b"[" * 2_900_000),
        ("a broken number at the end", lambda: b'{"a":[' + b"{}," * 900_000 + b"01]}"),
        ("many unknown fields", lambda: b"{" + b",".join(b'"f%d":0' % n for n in range(230_000)) + b"}"),
        ("one field many times", lambda: b"{" + b",".join(b'"data":{}' for n in range(290_000)) + b"}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faulty_json(victim: Any, what: str, make: Callable[[], bytes]) -> None:
    """An empty object in a list takes 72 bytes for three that were sent: that is more than twenty times as many."""
    body = make()
    times = 28 if b"{},{}" in body else 20
    with victim.attacked(f"{what}, {len(body) >> 10} KB", allowance=times * len(body)):
        answer = victim.call("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert answer.status in (400, 422)


@pytest.mark.parametrize(
    ("what", "piece"),
    [("bytes", b"\xff"), ("surrogates", b"\xed\xa0\x80"), ("characters and bytes", b"\xc3\xa9\xff")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_text(victim: Any, what: str, piece: bytes) -> None:
    """One string of megabytes, which Go takes with replacements: it is mended, read and written in pieces."""
    body = b'{"a":"' + piece * (2_900_000 // len(piece)) + b'"}'
    with victim.attacked(f"invalid text, {what}", allowance=20 * len(body)):
        answer = victim.call("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert answer.status == 400


def test_protobuf_of_a_user_without_a_role(victim: Any) -> None:
    requirement = {"key": "a", "operator": "In", "values": ["b"]}
    spec = {
        "resourceAttributes": {
            "verb": "list",
            "resource": "pods",
            "labelSelector": {"requirements": [requirement] * 150_000},
        }
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": spec}
    body = orjson.dumps(review)[:2_900_000]
    with victim.attacked("SelfSubjectAccessReview, 2.9 MB", allowance=20 * len(body)):
        victim.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, user="nobody")


def test_large_network_policy(victim: Any) -> None:
    rule = {"ports": [{"port": 80, "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "attack"},
        "spec": {"podSelector": {}, "ingress": [rule] * 28_000, "policyTypes": ["Ingress"]},
    }
    with victim.attacked("NetworkPolicy, 2.8 MB", allowance=100 << 20):
        answer = victim.call("POST", POLICIES, policy)
    assert answer.status == 201


def test_many_finalizers(victim: Any) -> None:
    with victim.attacked("100,000 finalizers"):
        answer = victim.call("POST", MAPS, config_map(finalizers=[f"a.example/f{n}" for n in range(100_000)]))
    assert answer.status in (413, 422, 500)


def test_many_bad_finalizers(victim: Any) -> None:
    with victim.attacked("50,000 bad finalizers"):
        answer = victim.call("POST", MAPS, config_map(finalizers=["-"] * 50_000))
    assert answer.status == 422


def test_many_owners(victim: Any) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
    owners = [{**owner, "uid": str(n)} for n in range(20_000)]
    with victim.attacked("20,000 owners", allowance=32 << 20):
        victim.call("POST", MAPS, config_map(ownerReferences=owners))


def test_many_bad_labels(victim: Any) -> None:
    with victim.attacked("50,000 bad labels"):
        answer = victim.call("POST", MAPS, config_map(labels={f"-{n}": "-" for n in range(50_000)}))
    assert answer.status == 422


def test_pod_with_many_containers(victim: Any) -> None:
    containers = [{"name": f"c{n}", "image": "i", "ports": [{"containerPort": 1}]} for n in range(10_000)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attack"}, "spec": {"containers": containers}}
    with victim.attacked("pod with 10,000 containers"):
        victim.call("POST", "/api/v1/namespaces/default/pods", pod)


def test_large_object_in_every_form(victim: Any) -> None:
    big = config_map(name="big")
    big["data"] = {f"k{n}": "v" * 20 for n in range(12_500)}
    assert victim.call("POST", MAPS, big).status == 201
    forms = ["application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"]
    with victim.attacked("an object of 500 KB, in all forms", allowance=32 << 20):
        for accept in forms:
            assert victim.call("GET", f"{MAPS}/big", accept=accept).status == 200
        assert victim.call("GET", f"{MAPS}/big?pretty=1").status == 200
    merge = "application/merge-patch+json"
    with victim.attacked("an object of 500 KB, patched", allowance=32 << 20):
        assert victim.call("PATCH", f"{MAPS}/big", {"data": {"k1": "x"}}, merge).status == 200
        strategic = "application/strategic-merge-patch+json"
        assert victim.call("PATCH", f"{MAPS}/big", {"data": {"k2": "x"}}, strategic).status == 200
        operations = [{"op": "add", "path": "/data/k3", "value": "x"}]
        assert victim.call("PATCH", f"{MAPS}/big", operations, "application/json-patch+json").status == 200
        big["data"]["k4"] = "x"
        assert victim.call("PUT", f"{MAPS}/big", big).status == 200
    assert victim.call("DELETE", f"{MAPS}/big").status == 200


def test_eight_large_objects_at_once(victim: Any) -> None:
    """They are worked on one after the other: neither what others wait for nor what is in memory adds up."""
    bodies = []
    for number in range(8):
        body = config_map(name=f"one-of-eight-{number}")
        body["data"] = {f"k{n}": "v" * 20 for n in range(20_000)}
        bodies.append(orjson.dumps(body))

    def write(method: str) -> list[int]:
        def one(number: int) -> None:
            path = MAPS if method == "POST" else f"{MAPS}/one-of-eight-{number}"
            found.append(victim.call(method, path, bodies[number].replace(b"vvvv", method.encode())).status)

        found: list[int] = []
        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    with victim.attacked("eight objects of 700 KB created at once", allowance=70 << 20):
        assert write("POST") == [201] * 8
    with victim.attacked("eight objects of 700 KB updated at once", allowance=70 << 20):
        assert write("PUT") == [200] * 8
    for number in range(8):
        assert victim.call("DELETE", f"{MAPS}/one-of-eight-{number}").status == 200
