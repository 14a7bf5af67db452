"""Whoever selects an object is told, however many they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.indexer import SELECTOR, Key, read_selector
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.selecting import Selecting
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.machinery.supervision import Supervisor
from pilothouse.testing.in_process import InProcessServer


def pod(**labels: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "p", "labels": labels}}


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as running:
        yield running


async def budgets(server: InProcessServer, supervisor: Supervisor, selectors: Sequence[Any]) -> Informer:
    """An informer that knows budgets b0, b1 and so on, of these selectors."""
    cluster = server.process.cluster
    informers = InformerFactory(lambda gvr: built_in_source(cluster.storage, gvr), supervisor)
    informers.start()
    client = LoopbackClients(cluster.handler).api_server().of("policy", "v1", "poddisruptionbudgets")
    for number, selector in enumerate(selectors):
        spec = {"minAvailable": 1, "selector": selector}
        await client.create({"metadata": {"name": f"b{number}", "namespace": "default"}, "spec": spec})
    informer = informers.of("policy", "v1", "poddisruptionbudgets")
    informer.add_reading(SELECTOR, read_selector)
    return informer


async def seen(informer: Informer, count: int) -> None:
    await informer.wait_synced()
    async with asyncio.timeout(60):
        while len(informer.lister) < count:
            await asyncio.sleep(0)


async def test_those_who_select_it_are_told(server: InProcessServer, supervisor: Supervisor) -> None:
    among = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}
    both = {"matchLabels": {"a": "x", "b": "z"}}
    informer = await budgets(server, supervisor, [{"matchLabels": {"a": "x"}}, both, among, {}])
    told: list[Key] = []
    selecting = Selecting(informer, told.append)
    everything: list[Key] = []
    selecting_all = Selecting(informer, everything.append, empty_selects=True)
    await seen(informer, 4)
    selecting.wake(pod(a="x"))
    assert sorted(told) == [("default", "b0"), ("default", "b2")]
    told.clear()
    selecting.wake(pod(a="x", b="z", c="w"))
    assert sorted(told) == [("default", "b0"), ("default", "b1"), ("default", "b2")]
    selecting_all.wake(pod())
    assert everything == [("default", "b3")]


async def test_very_many_are_told_in_turns(server: InProcessServer, supervisor: Supervisor) -> None:
    informer = await budgets(server, supervisor, [{"matchLabels": {"a": "x"}}] * 350)
    told: list[Key] = []
    selecting = Selecting(informer, told.append)
    await seen(informer, 350)
    for _ in range(20):
        selecting.wake(pod(a="x", pods="alike"))
    assert not told, "none of it is done where an informer tells of a pod"
    async with asyncio.timeout(60):
        while len(told) < 350:
            await asyncio.sleep(0)
    assert len(set(told)) == 350
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(told) == 350, "pods that are alike are told of together"
