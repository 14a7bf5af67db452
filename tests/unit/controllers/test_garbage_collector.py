"""What becomes of objects when their owners go: with them, before them, after them, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.testing.running_controllers import RunningControllers


class Maps:
    """Config maps that own one another."""

    def __init__(self, cluster: RunningControllers) -> None:
        self._cluster, self._maps = cluster, cluster.of("", "v1", "configmaps")

    async def make(self, name: str, *owners: dict[str, Any], finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
        """A map; a reference to it, for those that it is to own."""
        metadata = {"name": name, "namespace": "default", "ownerReferences": list(owners)}
        made = await self._maps.create({"metadata": {**metadata, "finalizers": list(finalizers)}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"]}
        return {**reference, "blockOwnerDeletion": True}

    async def delete(self, name: str, propagation: Any) -> None:
        await self._maps.delete("default", name, propagation=propagation)

    async def gone(self, name: str) -> None:
        await self._cluster.wait_gone(self._maps, "default", name)

    async def owners(self, name: str) -> list[str]:
        found = await self._maps.get("default", name)
        return [each["name"] for each in found["metadata"].get("ownerReferences") or ()]

    async def until_owned_by(self, name: str, *owners: str) -> None:
        await self._cluster.wait(
            self._maps,
            "default",
            name,
            lambda obj: [each["name"] for each in obj["metadata"].get("ownerReferences") or ()] == list(owners),
        )

    async def is_there(self, name: str) -> bool:
        return bool(await self._maps.get("default", name))

    async def finish(self, name: str) -> None:
        await self._maps.patch("default", name, {"metadata": {"finalizers": None}})


@pytest.fixture
async def maps() -> AsyncIterator[Maps]:
    async with RunningControllers("garbage_collector") as cluster:
        yield Maps(cluster)


async def test_what_becomes_of_dependents(maps: Maps) -> None:
    first, second = await maps.make("first"), await maps.make("second")
    await maps.make("of-both", first, second)
    await maps.make("of-first", first)
    await maps.delete("first", "Foreground")
    await maps.gone("first")
    await maps.gone("of-first")
    assert await maps.owners("of-both") == ["second"], "another owner is there, so it stays and blocks nobody"

    await maps.delete("second", "Orphan")
    await maps.gone("second")
    await maps.until_owned_by("of-both")

    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-such"}
    third = await maps.make("third")
    await maps.make("half-orphan", nobody, third)
    await maps.until_owned_by("half-orphan", "third")
    await maps.make("orphan", nobody)
    await maps.gone("orphan")

    child = await maps.make("child", third)
    await maps.make("grandchild", child, finalizers=("example.com/hold",))
    await maps.delete("third", "Foreground")
    await maps.gone("half-orphan")
    assert await maps.is_there("third") and await maps.is_there("child"), "they go after what they own"
    await maps.finish("grandchild")
    for name in ("grandchild", "child", "third"):
        await maps.gone(name)
