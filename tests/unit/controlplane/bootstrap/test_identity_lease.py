from typing import Any

import pytest

from pilothouse.controllers.own_objects import create, existing
from pilothouse.controlplane.bootstrap.identity_lease import IdentityLease, collect_expired, is_expired, server_identity
from pilothouse.machinery.times import Instant, parse_micro_time
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

NOW = parse_micro_time("2026-11-16T12:00:00.000000Z")


def leases_of(storage: StorageFactory) -> Store:
    return storage.store("coordination.k8s.io", "v1", "leases")


def test_the_identity_is_that_of_kube_apiserver_on_the_same_host() -> None:
    assert server_identity("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


async def test_a_lease_is_made_renewed_and_taken_away(storage: StorageFactory) -> None:
    store = leases_of(storage)
    lease = IdentityLease(store, "192.0.2.2:6443", "vm")
    await lease.begin()
    first = await existing(store, "kube-system", lease.name)
    await lease.renew()
    second = await existing(store, "kube-system", lease.name)
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    assert first["spec"]["renewTime"] < second["spec"]["renewTime"]
    await lease.end()
    await lease.renew()
    assert await existing(store, "kube-system", lease.name) is None


async def test_a_lease_that_was_left_behind_is_replaced(storage: StorageFactory) -> None:
    store = leases_of(storage)
    await IdentityLease(store, "192.0.2.1:1", "vm").begin()
    before = await existing(store, "kube-system", server_identity("vm"))
    await IdentityLease(store, "192.0.2.2:2", "vm").begin()
    after = await existing(store, "kube-system", server_identity("vm"))
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert after["metadata"]["annotations"] == {"kubernetes.io/peer-advertise-address": "192.0.2.2:2"}


async def test_a_lease_that_somebody_removed_comes_back(storage: StorageFactory) -> None:
    store = leases_of(storage)
    lease = IdentityLease(store, "192.0.2.2:6443", "vm")
    await lease.renew()
    assert await existing(store, "kube-system", lease.name) is not None


@pytest.mark.parametrize(
    ("spec", "expired"),
    [
        ({"renewTime": "2026-11-16T11:59:00.000000Z", "leaseDurationSeconds": 61}, False),
        ({"renewTime": "2026-11-16T11:59:00.000000Z", "leaseDurationSeconds": 60}, False),
        ({"renewTime": "2026-11-16T11:59:00.000000Z", "leaseDurationSeconds": 59}, True),
        ({"renewTime": "2026-11-16T11:59:00.000000Z"}, True),
        ({"leaseDurationSeconds": 3600}, True),
        ({}, True),
    ],
)
def test_a_lease_expires_when_its_time_is_over_or_unknown(spec: dict[str, Any], expired: bool) -> None:
    assert is_expired({"spec": spec}, NOW) is expired
    assert is_expired({"spec": spec}, Instant(NOW.seconds + 10**6)) is True


async def test_only_expired_identity_leases_are_collected(storage: StorageFactory) -> None:
    store = leases_of(storage)
    label = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    old = {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 10, "holderIdentity": "x"}
    for name, namespace, labels in (
        ("dead", "kube-system", label),
        ("other", "kube-system", {}),
        ("elsewhere", "default", label),
    ):
        metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
        await create(store, {"metadata": metadata, "spec": dict(old)})
    await IdentityLease(store, "192.0.2.2:6443", "vm").begin()
    await collect_expired(store)
    assert sorted(entry.name for entry in store.cache.entries()) == sorted(
        ["other", "elsewhere", server_identity("vm")]
    )
