"""Pods that nobody has room for are made at a pace."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.controllers.runtime import creation_pace
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.creation_pace import CreationPace
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.in_process import InProcessServer


async def test_while_very_many_wait_for_a_node_a_few_more_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation_pace, "_MOST_WAITING", 3)
    async with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        pods = LoopbackClients(server.process.cluster.handler).api_server().of("", "v1", "pods")
        informer, clock = server.process.cluster.informers.of("", "v1", "pods"), FakeClock()
        pace = CreationPace(informer, clock)

        async def make(name: str, **spec: str) -> None:
            metadata = {"name": name, "namespace": "default"}
            await pods.create({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})
            async with asyncio.timeout(120):
                while informer.lister.get("default", name) is None:
                    await asyncio.sleep(0)

        for number in range(3):
            await make(f"placed{number}", nodeName="a")
        for number in range(2):
            await make(f"waiting{number}")
        assert pace.allow("default", 500) == 500
        await make("waiting2")
        assert pace.allow("other", 500) == 500
        assert [pace.allow("default", 500) for _ in range(2)] == [0, 0]
        clock.advance(0.5)
        assert [pace.allow("default", 500) for _ in range(2)] == [10, 0]
        clock.advance(60)
        assert [pace.allow("default", 5), pace.allow("default", 500)] == [5, 15]
        await pods.delete("default", "waiting2")
        async with asyncio.timeout(120):
            while informer.lister.get("default", "waiting2") is not None:
                await asyncio.sleep(0)
        assert pace.allow("default", 500) == 500
