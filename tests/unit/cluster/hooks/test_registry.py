"""Health of a whole server: every check is backed by something that can fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pilothouse.cluster.hooks.registry import EVERYWHERE
from pilothouse.controllers.own_objects import create, existing
from pilothouse.server.health import HealthChecks
from pilothouse.storage.backends.contract import Unavailable
from pilothouse.testing.in_process import InProcessServer


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as server:
        yield server


def failing(server: InProcessServer, endpoint: str) -> list[str]:
    """The checks that fail now."""
    checks: HealthChecks = server.process.cluster.servers.aggregator.checks
    return [each.name for each in checks._checks[endpoint] if each.check()]


def kill(name: str) -> None:
    """Cancel a task behind its owner's back."""
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == name]
    task.cancel()


async def until(condition: object) -> None:
    async with asyncio.timeout(120):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)


async def test_everything_is_well_at_first_and_says_what_backs_it(server: InProcessServer) -> None:
    for endpoint in ("healthz", "livez", "readyz"):
        await until(lambda endpoint=endpoint: not failing(server, endpoint))  # type: ignore[misc]
    for name, backed_by, _ in server.process.cluster.servers.aggregator.checks.described():
        assert backed_by, name


async def test_work_that_does_not_come_back_turns_its_hook_red(server: InProcessServer) -> None:
    await until(lambda: not failing(server, "readyz"))
    for _ in range(3):
        kill("system namespaces")
        await asyncio.sleep(0)
        await until(lambda: any(task.get_name() == "system namespaces" for task in asyncio.all_tasks()))
    red = failing(server, "readyz")
    assert red == ["ping", "poststarthook/start-system-namespaces-controller"]


async def test_an_informer_that_does_not_come_back_turns_its_hooks_red(server: InProcessServer) -> None:
    await until(lambda: not failing(server, "readyz"))
    name = "informer of customresourcedefinitions.apiextensions.k8s.io"
    for _ in range(3):
        kill(name)
        await asyncio.sleep(0)
        await until(lambda: any(task.get_name() == name for task in asyncio.all_tasks()))
    red = failing(server, "readyz")
    assert red == [
        "ping",
        "poststarthook/generic-apiserver-start-informers",
        "poststarthook/start-apiextensions-informers",
    ]


async def test_caches_that_do_not_follow_the_store_turn_admission_red(server: InProcessServer) -> None:
    await until(lambda: not failing(server, "livez"))
    await server.process.storage.cacher.close()
    red = failing(server, "livez")
    assert "poststarthook/start-apiserver-admission-initializer" in red
    assert "poststarthook/storage-object-count-tracker-hook" in red


async def test_rules_of_authorization_survive_the_death_of_their_informers(server: InProcessServer) -> None:
    cluster = server.process.cluster
    for resource in ("clusterroles", "clusterrolebindings"):
        kill(f"informer of {resource}.rbac.authorization.k8s.io")
    await asyncio.sleep(0)
    roles = cluster.storage.store("rbac.authorization.k8s.io", "v1", "clusterroles")
    bindings = cluster.storage.store("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await create(roles, {"metadata": {"name": "reads"}, "rules": [rule]})
    subject = {"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": "reads", "apiGroup": "rbac.authorization.k8s.io"}
    await create(bindings, {"metadata": {"name": "reads"}, "subjects": [subject], "roleRef": reference})
    from pilothouse.machinery.user import User

    maps = cluster.clients.as_user(User("somebody"), "test").of("", "v1", "configmaps")

    async def allowed() -> bool:
        try:
            await maps.list("default")
        except Exception:
            return False
        return True

    async with asyncio.timeout(120):
        while not await allowed():
            await asyncio.sleep(0.005)


async def test_an_informer_that_is_not_synced_shows(server: InProcessServer) -> None:
    informers = server.process.cluster.informers
    informers.of("example.com", "v1", "widgets")
    assert failing(server, "readyz") == []  # what is not served need not be known
    informers.of("", "v1", "podtemplates")
    assert failing(server, "readyz") == ["informer-sync"]
    await until(lambda: not failing(server, "readyz"))


async def test_a_watch_cache_that_breaks_is_followed_again(server: InProcessServer) -> None:
    cluster = server.process.cluster
    store = cluster.storage.store("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    store.cache.reset(Unavailable("the feed broke"))
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    client = cluster.clients.api_server()
    heard: list[str] = []
    informer = cluster.informers.of("example.com", "v1", "widgets")
    informer.add_handler(
        lambda obj: heard.append(f"add {obj['kind']} {obj['metadata']['name']}"),
        on_delete=lambda obj: heard.append(f"delete {obj['metadata']['name']}"),
    )
    await client.of("apiextensions.k8s.io", "v1", "customresourcedefinitions").create(definition)
    async with asyncio.timeout(120):
        await informer.wait_synced()
    widgets = client.of("example.com", "v1", "widgets")
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a", "namespace": "default"}}
    async with asyncio.timeout(120):
        while True:
            try:
                await widgets.create(widget)
                break
            except Exception:
                await asyncio.sleep(0.005)
    await until(lambda: heard == ["add Widget a"])
    await client.of("apiextensions.k8s.io", "v1", "customresourcedefinitions").delete("", "widgets.example.com")
    await until(lambda: heard == ["add Widget a", "delete a"])
    await until(lambda: not informer.has_synced)
    assert await existing(store, "", "widgets.example.com") is None


async def test_what_every_worker_runs_are_hooks_that_there_are(server: InProcessServer) -> None:
    names = set(server.process.cluster.servers.aggregator.hooks.names())
    elsewhere = {
        "max-in-flight-filter",
        "mixed-version-proxy-handler",
        "local-discovery-cache-sync",
        "peer-discovery-workers",
    }
    assert EVERYWHERE - names == elsewhere, "hooks that other flags switch on"
    assert "start-system-namespaces-controller" in names - EVERYWHERE
