"""A thousand kinds are begun to be followed in turns, and each once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pilothouse.controllers.garbage_collector import resources
from pilothouse.controllers.garbage_collector.resources import CollectableResources
from pilothouse.controllers.runtime.discovery import Discovered, ServedResource
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.net.work_turns import TURN_SECONDS

COUNT = 60


async def test_kinds_that_come_together_are_followed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = frozenset({"delete", "list", "watch"})
    served = tuple(
        ServedResource(GroupVersionResource("example.com", "v1", f"kinds{number}"), f"Kind{number}", True, verbs)
        for number in range(COUNT)
    )

    async def discover(client: Any) -> Discovered:
        return Discovered(served, ())

    monkeypatch.setattr(resources, "discover", discover)
    added: list[str] = []

    def add(resource: ServedResource) -> None:
        began = time.perf_counter()
        while time.perf_counter() - began < TURN_SECONDS / 2:
            pass
        added.append(resource.kind)

    nobody: Any = None
    collectable = CollectableResources(nobody, add)
    refreshing = [asyncio.ensure_future(collectable.refresh()) for _ in range(2)]
    most = 0
    while not all(each.done() for each in refreshing):
        before = len(added)
        await asyncio.sleep(0)
        most = max(most, len(added) - before)
        assert not added or collectable.of_kind("example.com/v1", f"Kind{COUNT - 1}") == served[-1]
    assert 0 < most <= 2
    assert sorted(added) == sorted(each.kind for each in served)
