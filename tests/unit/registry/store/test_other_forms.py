"""Objects in kube-apiserver's form: stored as they were judged, completed by reading, written anew if outdated."""

from __future__ import annotations

import copy

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.registry.store.stored_form import BuiltInForm, MediaType
from pilothouse.storage.cacher import Cacher

CLAIM: Object = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
PORT = {"port": 80, "targetPort": 80, "protocol": "TCP"}
PODS = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def context() -> Context:
    return Context(namespace="default", now="2026-01-02T03:04:05Z")


@pytest.fixture
def factory(cacher: Cacher) -> StorageFactory:
    return StorageFactory(cacher, media=MediaType.PROTOBUF)


async def stored(store: Store) -> tuple[int, bytes]:
    found = await store.cache.stored(store.key("default", "a"))
    assert found is not None
    return found.revision, found.value


def bare(store: Store, value: bytes) -> Object:
    """What a stored value holds, without what reading fills in."""
    return BuiltInForm(store.resource, lambda obj: None, MediaType.PROTOBUF).read(value)[0]


async def made(store: Store, obj: Object) -> Object:
    given = {"metadata": {"name": "a"}, **obj}
    store.strategy.default(given)
    return store.decode(await store.create(context(), given))


async def unchanged(old: Object | None) -> Object:
    assert old is not None
    return {**old}


async def test_a_claim_is_stored_without_the_phase_that_reading_gives(factory: StorageFactory) -> None:
    store = factory.store("", "v1", "persistentvolumeclaims")
    assert (await made(store, CLAIM))["status"] == {"phase": "Pending"}
    assert not bare(store, (await stored(store))[1]).get("status")


async def test_a_job_is_stored_without_the_labels_that_reading_gives(factory: StorageFactory) -> None:
    store = factory.store("batch", "v1", "jobs")
    labels = (await made(store, {"spec": {"template": {"metadata": {}, **PODS}}}))["metadata"]["labels"]
    found = bare(store, (await stored(store))[1])
    assert found["spec"]["template"]["metadata"]["labels"] == labels
    assert "labels" not in found["metadata"]


async def test_what_is_stored_incomplete_is_completed_by_a_write_that_changes_nothing(factory: StorageFactory) -> None:
    store = factory.store("", "v1", "persistentvolumeclaims")
    await made(store, CLAIM)
    first = (await stored(store))[0]
    entry, _ = await store.update(context(), "a", unchanged)
    second, value = await stored(store)
    assert (entry.revision, bare(store, value)["status"]) == (second, {"phase": "Pending"})
    assert second > first
    for _ in range(2):
        entry, _ = await store.update(context(), "a", unchanged)
        assert (entry.revision, (await stored(store))[0]) == (second, second)


@pytest.mark.parametrize("media", [MediaType.OWN_JSON, MediaType.PROTOBUF])
async def test_an_external_name_keeps_its_traffic_policy_unseen(cacher: Cacher, media: MediaType) -> None:
    factory = StorageFactory(cacher, media=media)
    store = factory.store("", "v1", "services")
    named = {"spec": {"type": "ExternalName", "externalName": "h.example", "internalTrafficPolicy": "Local"}}
    assert "internalTrafficPolicy" not in (await made(store, copy.deepcopy(named)))["spec"]
    at, value = await stored(store)
    assert b"Local" in value
    read = store.decode(store.codec.entry("k", value, at))
    assert read["spec"] == store.decode(await store.get("default", "a"))["spec"]

    async def replaced(old: Object | None) -> Object:
        assert old is not None
        given = {"metadata": dict(old["metadata"]), **named, "status": old["status"]}
        return {**given, "spec": {**named["spec"], "sessionAffinity": "None"}}

    assert (await store.update(context(), "a", replaced))[0].revision == at

    async def patched(old: Object | None) -> Object:
        assert old is not None
        return {**old, "spec": {**old["spec"], "type": "ClusterIP", "ports": [PORT]}}

    entry, _ = await store.update(context(), "a", patched)
    assert store.decode(entry)["spec"]["internalTrafficPolicy"] == "Local"


@pytest.mark.parametrize("media", [MediaType.OWN_JSON, MediaType.PROTOBUF])
async def test_a_change_of_what_is_not_shown_is_one(cacher: Cacher, media: MediaType) -> None:
    store = StorageFactory(cacher, media=media).store("", "v1", "services")
    await made(store, {"spec": {"type": "ExternalName", "externalName": "h.example"}})
    at, _ = await stored(store)

    async def given(old: Object | None) -> Object:
        assert old is not None
        return {**old, "spec": {**old["spec"], "internalTrafficPolicy": "Local"}}

    entry, _ = await store.update(context(), "a", given)
    assert entry.revision > at
    report = {"loadBalancer": {}, "conditions": [{"type": "A", "status": "True"}]}

    async def reported(old: Object | None) -> Object:
        assert old is not None
        return {"metadata": dict(old["metadata"]), "spec": {}, "status": report}

    await store.update(context(), "a", reported, strategy=store.strategy.subresource("status"))
    assert b"Local" in (await stored(store))[1]


async def rewritten(store: Store, text: str) -> bool:
    """Whether an object that somebody kept as this is stored as before when it is written back as it is."""
    at, value = await stored(store)
    text = text.replace("UID", bare(store, value)["metadata"]["uid"])
    kept = await store.cache.update(store.key("default", "a"), text.encode() + b"\n", at)
    entry, _ = await store.update(context(), "a", unchanged)
    assert entry.revision > kept.revision
    return await stored(store) == (entry.revision, value)


async def test_what_is_stored_otherwise_is_written_anew(factory: StorageFactory) -> None:
    """As migrations of storage count on, which write each object back as it is."""
    metadata = '"metadata":{"name":"a","namespace":"default","uid":"UID","creationTimestamp":"2026-01-02T03:04:05Z"}'
    maps = factory.store("", "v1", "configmaps")
    await made(maps, {"data": {"a": "1"}})
    assert await rewritten(maps, f'{{"kind":"ConfigMap","apiVersion":"v1",{metadata},"data":{{"a":"1"}}}}')
    budgets = factory.store("policy", "v1", "poddisruptionbudgets")
    await made(budgets, {"spec": {"maxUnavailable": 1}})
    head = '"kind":"PodDisruptionBudget","apiVersion":"policy/v1beta1"'
    counted = metadata.replace('"creation', '"generation":1,"creation')
    assert await rewritten(budgets, f'{{{head},{counted},"spec":{{"maxUnavailable":1}},"status":{{}}}}')
