import asyncio
from typing import Any

from pilothouse.controllers.following import Follower
from pilothouse.controllers.own_objects import create, remove, update
from pilothouse.registry.storage import StorageFactory


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {}}


class Heard:
    """What a follower reports."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._more = asyncio.Event()

    def put(self, obj: dict[str, Any]) -> None:
        self._note(f"put {obj['metadata']['name']} {sorted(obj.get('data') or {})}")

    def gone(self, namespace: str, name: str) -> None:
        self._note(f"gone {namespace}/{name}")

    def _note(self, what: str) -> None:
        self.events.append(what)
        self._more.set()

    async def until(self, what: str) -> None:
        async with asyncio.timeout(10):
            while what not in self.events:
                self._more.clear()
                await self._more.wait()


async def test_what_there_is_comes_first_and_then_every_change(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await create(store, config_map("old"))
    heard = Heard()
    follower = Follower(store, heard.put, heard.gone)
    follower.start()
    await follower.synced.wait()
    assert heard.events == ["put old []"]
    await create(store, config_map("new"))
    await update(store, "default", "new", lambda obj: {**obj, "data": {"k": "v"}})
    await remove(store, "default", "old")
    await heard.until("gone default/old")
    assert heard.events == ["put old []", "put new []", "put new ['k']", "gone default/old"]
    await follower.stop()


async def test_one_object_can_be_followed_alone(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    heard = Heard()
    follower = Follower(store, heard.put, heard.gone, store.key("kube-system", "mine"))
    follower.start()
    await follower.synced.wait()
    await create(store, config_map("mine"))
    await create(store, config_map("mine-too", "kube-system"))
    await create(store, config_map("mine", "kube-system"))
    await remove(store, "kube-system", "mine")
    await heard.until("gone kube-system/mine")
    assert heard.events == ["put mine []", "gone kube-system/mine"]
    await follower.stop()
