"""Large objects where they are kept in etcd: kube-apiserver's form of them has to be made, and read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from tests.robustness.attacks.conftest import Victim

from pilothouse.testing.etcd_process import EtcdCluster, find_etcd

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")

MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


@pytest.fixture(scope="module")
def etcd() -> Iterator[EtcdCluster]:
    with EtcdCluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_etcd(etcd: EtcdCluster, launch_victim: Callable[..., Victim]) -> Victim:
    return launch_victim(f"--etcd-servers={','.join(etcd.urls)}")


def config_map(name: str) -> dict[str, Any]:
    data = {f"k{number}": "v" * 20 for number in range(28_000)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_large_network_policy(on_etcd: Any) -> None:
    rule = {"ports": [{"port": 80, "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    spec = {"podSelector": {}, "ingress": [rule] * 28_000, "policyTypes": ["Ingress"]}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "attack"}}
    with on_etcd.attacked("on etcd: NetworkPolicy, 2.8 MB", allowance=100 << 20):
        assert on_etcd.call("POST", POLICIES, {**policy, "spec": spec}).status == 201


def test_large_policies_by_another_server(
    on_etcd: Any, etcd: EtcdCluster, launch_victim: Callable[..., Victim]
) -> None:
    """What another server writes to the same etcd has to be read here, and again by whoever asks for it first."""
    other = launch_victim(f"--etcd-servers={','.join(etcd.urls)}")
    assert on_etcd.call("GET", POLICIES).status == 200
    spec = {"podSelector": {}, "ingress": [{"ports": [{"port": number + 1}]} for number in range(12_000)]}
    with on_etcd.attacked("on etcd: large policies by another server", allowance=100 << 20):
        for name in ("first", "second"):
            created = other.call("POST", POLICIES, {"metadata": {"name": name}, "spec": spec})
            assert created.status == 201
            answer = on_etcd.call("GET", f"{POLICIES}/{name}")
            assert answer.json["metadata"]["resourceVersion"] == created.json["metadata"]["resourceVersion"]


def test_a_large_object_is_patched_and_deleted(on_etcd: Any) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["a.example/b"]
    with on_etcd.attacked("on etcd: an object of 1 MB, patched and deleted", allowance=100 << 20):
        assert on_etcd.call("POST", MAPS, held).status == 201
        merge = "application/merge-patch+json"
        assert on_etcd.call("PATCH", f"{MAPS}/held", {"data": {"k1": "x"}}, merge).status == 200
        assert on_etcd.call("DELETE", f"{MAPS}/held").status == 200
        assert on_etcd.call("PATCH", f"{MAPS}/held", {"metadata": {"finalizers": None}}, merge).status == 200


def test_eight_large_objects_at_once(on_etcd: Any) -> None:
    bodies = [orjson.dumps(config_map(f"one-of-eight-{number}")) for number in range(8)]
    found: list[int] = []

    def create(body: bytes) -> None:
        found.append(on_etcd.call("POST", MAPS, body).status)

    with on_etcd.attacked("on etcd: eight objects of 1 MB created at once", allowance=100 << 20):
        threads = [threading.Thread(target=create, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [201] * 8
