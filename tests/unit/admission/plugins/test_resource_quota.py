"""ResourceQuota: charging, refusing, and never spending more than there is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.resource_quota import ResourceQuota
from pilothouse.endpoints.admission import CREATE, UPDATE
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupResource
from pilothouse.registry.storage import StorageFactory

QUOTAS, PODS, MAPS = "/v1/resourcequotas", "/v1/pods", "/v1/configmaps"
MANAGED = {
    "managedFields": [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:hard": {}}},
        }
    ]
}


@pytest.fixture
async def plugin(environment: Environment) -> Any:
    made = ResourceQuota(environment)
    yield made
    await made.close()


async def quota(put: Any, name: str = "q", scopes: Any = None, used: Any = None, **hard: str) -> None:
    hard = {key.replace("__", "."): value for key, value in hard.items()}
    spec = {"hard": hard, **({"scopes": scopes} if scopes else {})}
    used = dict.fromkeys(hard, "0") if used is None else used
    await put(QUOTAS, name, "ns", spec=spec, status={"hard": hard, "used": used}, metadata=dict(MANAGED))


def stored(storage: StorageFactory, name: str = "q") -> dict[str, Any]:
    store = storage.store("", "v1", "resourcequotas")
    entry = store.cache.get(store.key("ns", name))
    assert entry is not None
    return store.decode(entry)


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}}


async def test_usage_is_charged(plugin: Any, make_request: Any, put: Any, storage: StorageFactory) -> None:
    await quota(put, configmaps="2")
    await plugin.validate(make_request(MAPS, config_map("a")))
    found = stored(storage)
    assert found["status"]["used"] == {"configmaps": "1"}
    _, managed = found["metadata"]["managedFields"]
    assert (managed["manager"], managed["operation"], managed["subresource"]) == ("kube-apiserver", "Update", "status")


async def test_too_much_is_refused(plugin: Any, make_request: Any, put: Any, refused: Any) -> None:
    await quota(put, configmaps="1", used={"configmaps": "1"})
    error = await refused(plugin.validate(make_request(MAPS, config_map("a"))))
    assert error.message == (
        'configmaps "a" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, '
        "limited: configmaps=1"
    )


async def test_dry_runs_are_checked_but_not_charged(
    plugin: Any, make_request: Any, put: Any, storage: StorageFactory, refused: Any
) -> None:
    await quota(put, configmaps="1")
    await plugin.validate(make_request(MAPS, config_map("a"), dry_run=True))
    assert stored(storage)["status"]["used"] == {"configmaps": "0"}
    await plugin.validate(make_request(MAPS, config_map("a")))
    await refused(plugin.validate(make_request(MAPS, config_map("b"), dry_run=True)))


async def test_quotas_without_usage_refuse(plugin: Any, make_request: Any, put: Any, refused: Any) -> None:
    await quota(put, configmaps="1", used={})
    error = await refused(plugin.validate(make_request(MAPS, config_map("a"))))
    assert error.message.endswith("status unknown for quota: q, resources: configmaps")


async def test_pods_must_state_what_is_counted(
    plugin: Any, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    await quota(put, requests__cpu="1")
    error = await refused(plugin.validate(make_request(PODS, make_pod())))
    assert error.message == 'pods "p" is forbidden: failed quota: q: must specify requests.cpu for: c'


async def test_fifty_at_once_never_overspend(plugin: Any, make_request: Any, put: Any, storage: StorageFactory) -> None:
    await quota(put, configmaps="20")
    answers = await asyncio.gather(
        *(plugin.validate(make_request(MAPS, config_map(f"m{i}"))) for i in range(50)), return_exceptions=True
    )
    refusals = [answer for answer in answers if answer is not None]
    assert len(refusals) == 30
    assert all(isinstance(answer, StatusError) and answer.code == 403 for answer in refusals)
    assert stored(storage)["status"]["used"] == {"configmaps": "20"}


async def test_two_servers_never_overspend(
    environment: Environment, make_request: Any, put: Any, storage: StorageFactory
) -> None:
    await quota(put, configmaps="20")
    servers = [ResourceQuota(environment), ResourceQuota(environment)]
    answers = await asyncio.gather(
        *(servers[i % 2].validate(make_request(MAPS, config_map(f"m{i}"))) for i in range(50)), return_exceptions=True
    )
    passed = sum(answer is None for answer in answers)
    assert passed <= 20
    assert stored(storage)["status"]["used"] == {"configmaps": str(passed)}
    for server in servers:
        await server.close()


async def test_every_quota_is_charged(plugin: Any, make_request: Any, put: Any, storage: StorageFactory) -> None:
    await quota(put, "q", configmaps="5")
    await quota(put, "r", configmaps="1")
    await plugin.validate(make_request(MAPS, config_map("a")))
    with pytest.raises(StatusError, match="exceeded quota: r"):
        await plugin.validate(make_request(MAPS, config_map("b")))
    assert stored(storage, "q")["status"]["used"] == {"configmaps": "1"}


async def test_scopes(plugin: Any, make_request: Any, make_pod: Any, put: Any, refused: Any) -> None:
    await quota(put, scopes=["BestEffort"], pods="0")
    busy = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    await plugin.validate(make_request(PODS, make_pod(containers=busy)))
    await refused(plugin.validate(make_request(PODS, make_pod())))


async def test_updates_are_charged_for_what_they_add(
    plugin: Any, make_request: Any, put: Any, storage: StorageFactory
) -> None:
    await quota(put, services="1", services__nodeports="5", used={"services": "1", "services.nodeports": "0"})
    old = {"metadata": {"name": "s", "resourceVersion": "1"}, "spec": {"type": "ClusterIP", "ports": [{}, {}]}}
    new = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{}, {}]}}
    await plugin.validate(make_request("/v1/services", new, old, operation=UPDATE))
    assert stored(storage)["status"]["used"] == {"services": "1", "services.nodeports": "2"}
    await plugin.validate(make_request("/v1/services", old, {**new, "metadata": old["metadata"]}, operation=UPDATE))
    assert stored(storage)["status"]["used"] == {"services": "1", "services.nodeports": "2"}


LIMITED = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "ResourceQuotaConfiguration",
    "limitedResources": [
        {"resource": "pods", "matchContains": ["pods"]},
        {"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
    ],
}


async def test_what_is_limited_by_default_needs_a_quota(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    plugin = ResourceQuota(environment, LIMITED)
    error = await refused(plugin.validate(make_request(PODS, make_pod())))
    assert error.message == 'pods "p" is forbidden: insufficient quota to consume: count/pods,pods'
    await quota(put, **{"pods": "5", "count/pods": "5"})
    await plugin.validate(make_request(PODS, make_pod()))
    error = await refused(plugin.validate(make_request(PODS, make_pod(priorityClassName="high"))))
    assert (error.code, error.message) == (
        500,
        "insufficient quota to match these scopes: [{PriorityClass In [high]}]",
    )
    await plugin.close()


async def test_namespaces_without_quotas_cost_nothing(plugin: Any, make_request: Any) -> None:
    await plugin.validate(make_request(MAPS, config_map("a")))
    assert plugin._ledger is None


@pytest.mark.parametrize(
    ("operation", "resource", "subresource", "concerned"),
    [
        (CREATE, GroupResource("", "configmaps"), "", True),
        (UPDATE, GroupResource("", "configmaps"), "", False),
        (UPDATE, GroupResource("", "services"), "", True),
        (UPDATE, GroupResource("", "pods"), "resize", True),
        (UPDATE, GroupResource("", "pods"), "status", False),
        (UPDATE, GroupResource("", "persistentvolumeclaims"), "status", True),
        (CREATE, GroupResource("", "events"), "", False),
        (CREATE, GroupResource("", "namespaces"), "", False),
        ("DELETE", GroupResource("", "pods"), "", False),
    ],
)
def test_what_concerns_it(
    plugin: Any, operation: str, resource: GroupResource, subresource: str, concerned: bool
) -> None:
    assert plugin.concerns(operation, resource, subresource) is concerned
