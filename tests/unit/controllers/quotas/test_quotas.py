"""The quota controller on a real server, whose admission charges what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pilothouse.admission.quota.evaluators import Evaluator
from pilothouse.admission.quota.pods import PodEvaluator
from pilothouse.controllers.quotas.usage import has_changed, usage_of
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.running_controllers import RunningControllers


def pod(name: str, cpu: str = "1", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
        "status": {"phase": phase},
    }


def shown(used: dict[str, Any]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in used.items()}


def test_usage() -> None:
    pods = [pod("a"), pod("b", "500m"), pod("c", phase="Succeeded"), pod("d", activeDeadlineSeconds=5)]
    names = ["pods", "requests.cpu", "count/pods", "secrets"]
    assert shown(usage_of(PodEvaluator(), pods, "default", names, [])) == {
        "pods": "3",
        "requests.cpu": "2500m",
        "count/pods": "4",
    }
    scope = {"scopeName": "Terminating", "operator": "Exists"}
    assert shown(usage_of(PodEvaluator(), pods, "default", ["pods"], [scope])) == {"pods": "1"}
    assert shown(usage_of(Evaluator(GroupResource("", "secrets")), [{}, {}], "default", names, [])) == {"secrets": "2"}


def test_what_changes_usage() -> None:
    evaluator = PodEvaluator()
    assert not has_changed(evaluator, pod("a"), pod("a", phase="Pending"), [])
    assert has_changed(evaluator, pod("a"), pod("a", phase="Failed"), [])
    assert has_changed(evaluator, pod("a"), pod("a", "2"), [])
    scope = {"scopeName": "Terminating", "operator": "Exists"}
    assert has_changed(evaluator, pod("a"), pod("a", activeDeadlineSeconds=5), [scope])


class Quotas(RunningControllers):
    """A cluster with one quota in the namespace default."""

    async def quota(self, **hard: str) -> None:
        hard = {name.replace("__", "/").replace("_", "."): value for name, value in hard.items()}
        metadata = {"name": "q", "namespace": "default"}
        await self.of("", "v1", "resourcequotas").create({"metadata": metadata, "spec": {"hard": hard}})

    async def used(self, **used: str) -> None:
        wanted = {name.replace("__", "/").replace("_", "."): value for name, value in used.items()}
        await self.wait(
            self.of("", "v1", "resourcequotas"),
            "default",
            "q",
            lambda obj: (obj.get("status") or {}).get("used") == wanted,
        )


@pytest.fixture
async def cluster() -> AsyncIterator[Quotas]:
    async with Quotas("quotas") as running:
        yield running


async def test_what_goes_is_given_back(cluster: Quotas) -> None:
    maps, pods = cluster.of("", "v1", "configmaps"), cluster.of("", "v1", "pods")
    await maps.create({"metadata": {"name": "before", "namespace": "default"}})
    existing = len([each async for each in maps.items("default")])
    await cluster.quota(pods="2", requests_cpu="2", count__configmaps=str(existing + 1), count__unheard_of="3")
    await cluster.used(pods="0", requests_cpu="0", count__configmaps=str(existing))
    quota = await cluster.of("", "v1", "resourcequotas").get("default", "q")
    assert quota["status"]["hard"] == quota["spec"]["hard"]
    for name in ("a", "b"):
        await pods.create({key: value for key, value in pod(name).items() if key != "status"})
    with pytest.raises(errors.Forbidden, match="exceeded quota"):
        await pods.create({key: value for key, value in pod("c").items() if key != "status"})
    await pods.delete("default", "a", grace_seconds=0)
    await maps.delete("default", "before")
    await cluster.used(pods="1", requests_cpu="1", count__configmaps=str(existing - 1))
    await pods.patch("default", "b", {"status": {"phase": "Succeeded"}}, subresource="status")
    await cluster.used(pods="0", requests_cpu="0", count__configmaps=str(existing - 1))
    await cluster.of("", "v1", "resourcequotas").patch("default", "q", {"spec": {"hard": {"secrets": "5"}}})
    await cluster.used(pods="0", requests_cpu="0", count__configmaps=str(existing - 1), secrets="0")


async def test_a_share_that_was_given_away_too_early_is_taken_back(cluster: Quotas) -> None:
    """A recount between the charge for an object and its storing says too little, and no event follows."""
    quotas, secrets = cluster.of("", "v1", "resourcequotas"), cluster.of("", "v1", "secrets")
    await cluster.quota(count__secrets="5")
    await cluster.used(count__secrets="0")
    for name in ("stays", "goes"):
        await secrets.create({"metadata": {"name": name, "namespace": "default"}})
    await secrets.delete("default", "goes")
    await cluster.used(count__secrets="1")
    await quotas.patch("default", "q", {"status": {"used": {"count/secrets": "0"}}}, subresource="status")
    await cluster.used(count__secrets="1")


async def test_what_was_charged_a_moment_ago_is_not_given_away_by_a_recount_that_nothing_new_brought_about() -> None:
    clock = FakeClock()
    async with Quotas("quotas", clock=clock) as cluster, asyncio.timeout(60):
        quotas, secrets = cluster.informers.of("", "v1", "resourcequotas"), cluster.of("", "v1", "secrets")

        def shown() -> Any:
            return [quota["status"].get("used", {}).get("count/secrets") for quota in quotas.lister.list()]

        async def until(condition: Callable[[], bool], step: float = 0.0) -> None:
            while not condition():
                clock.advance(step)
                await asyncio.sleep(0)

        def is_waiting() -> bool:
            return any(abs(seconds - 0.5) < 1e-6 for seconds in clock.waiting)

        await cluster.quota(count__secrets="5")
        await until(lambda: shown() == ["0"], step=0.1)
        await secrets.create({"metadata": {"name": "goes", "namespace": "default"}})
        await until(lambda: shown() == ["1"])
        await secrets.delete("default", "goes")
        await until(lambda: shown() == ["0"] and is_waiting())
        status = {"status": {"used": {"count/secrets": "1"}}}  # for an object that is about to be stored
        await cluster.of("", "v1", "resourcequotas").patch("default", "q", status, subresource="status")
        await until(lambda: shown() == ["1"])
        clock.advance(0.5)
        await until(is_waiting)  # for the rest of the moment
        await cluster.used(count__secrets="1")
        clock.advance(0.5)
        await cluster.used(count__secrets="0")


async def test_custom_resources_are_counted(cluster: Quotas) -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    await cluster.of("apiextensions.k8s.io", "v1", "customresourcedefinitions").create(
        {
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
        }
    )
    widgets = cluster.of("example.com", "v1", "widgets")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}
    async with asyncio.timeout(60):
        while True:
            try:
                await widgets.create(widget)
                break
            except errors.NotFound:
                await asyncio.sleep(0.01)
    await cluster.quota(count__widgets_example_com="1")
    await cluster.used(count__widgets_example_com="1")
    await widgets.delete("default", "w")
    await cluster.used(count__widgets_example_com="0")
