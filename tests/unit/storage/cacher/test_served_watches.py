"""Watches of clients end before the server does; watches of the server's own parts go on."""

from __future__ import annotations

from pathlib import Path

from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher, Entry

PODS = "/registry/pods/"


class Codec:
    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        return Entry(key, value, revision)

    def restamp(self, entry: Entry, revision: int) -> Entry:
        return Entry(entry.key, entry.data, revision)


async def test_only_served_watches_end(tmp_path: Path) -> None:
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    pods = cacher.resource(PODS, Codec())
    client, own = await pods.watch(client="ann"), await pods.watch()
    for watcher in cacher.stop_serving_watches():
        watcher.end()
    assert await client.next_batch() == []
    assert client.error is None
    late = await pods.watch(client="ann", initial=True)
    assert await late.next_batch() == []
    await pods.create(f"{PODS}a/x", b"{}")
    assert [event.type for event in await own.next_batch()] == ["ADDED"]
    own.stop()
    await cacher.close()
    await backend.close()


async def test_what_is_already_there_is_still_delivered(tmp_path: Path) -> None:
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    pods = cacher.resource(PODS, Codec())
    client = await pods.watch(client="ann")
    await pods.create(f"{PODS}a/x", b"{}")
    for watcher in cacher.stop_serving_watches():
        watcher.end()
    assert len(await client.next_batch()) == 1
    assert await client.next_batch() == []
    await cacher.close()
    await backend.close()
