"""Values read by other processes are read as here."""

import asyncio
import os
import signal

import pytest

from pilothouse.storage.backends.contract import KeyValue
from pilothouse.storage.cacher import Entry
from pilothouse.storage.cacher import reading_processes as reading

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


class Codec:
    """Values are labels; ``bad`` is none."""

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        if value == b"bad":
            raise ValueError(value)
        if value == b"deadly":
            os._exit(3)
        return Entry(key, b"<" + value + b">", revision, "ns", key, {"l": value.decode()}, {"f": str(revision)})

    def restamp(self, entry: Entry, revision: int) -> Entry:
        return entry


def page(first: int, count: int, value: bytes = b"v") -> list[KeyValue]:
    return [KeyValue(f"k{number:05}", value, number, number) for number in range(first, first + count)]


def shown(entry: Entry) -> tuple[object, ...]:
    return entry.key, entry.data, entry.revision, entry.namespace, entry.name, dict(entry.labels), dict(entry.fields)


class Reader:
    """Processes, and what they left to the server."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.processes = reading.ReadingProcesses(Codec(), 2, self.read_here)

    def read_here(self, item: KeyValue) -> Entry | None:
        self.left.append(item.key)
        return None if item.value == b"bad" else Entry(item.key, b"here", item.revision)


async def test_pages_come_back_in_order() -> None:
    reader = Reader()
    entries: list[Entry] = []
    for start in range(0, 2000, 100):
        entries += await reader.processes.give(page(start, 100))
    entries += await reader.processes.rest()
    await reader.processes.close()
    assert [shown(entry) for entry in entries] == [shown(Codec().entry(*_parts(item))) for item in page(0, 2000)]
    assert reader.left == []
    assert len({id(entry.labels) for entry in entries}) == 1


def _parts(item: KeyValue) -> tuple[str, bytes, int]:
    return item.key, item.value, item.revision


async def test_what_cannot_be_read_is_left_to_the_server() -> None:
    reader = Reader()
    await reader.processes.give([*page(0, 3), *page(3, 1, b"bad"), *page(4, 2)])
    entries = await reader.processes.rest()
    await reader.processes.close()
    assert [entry.key for entry in entries] == ["k00000", "k00001", "k00002", "k00004", "k00005"]
    assert reader.left == ["k00003"]


async def test_a_process_that_dies_loses_nothing() -> None:
    reader = Reader()
    entries: list[Entry] = []
    for start in range(0, 60, 10):
        entries += await reader.processes.give(page(start, 10, b"deadly" if start == 20 else b"v"))
    entries += await reader.processes.rest()
    await reader.processes.close()
    assert [entry.key for entry in entries] == [item.key for item in page(0, 60)]
    assert {f"k{number:05}" for number in range(20, 30)} <= set(reader.left)


async def test_they_end_when_they_are_left() -> None:
    reader = Reader()
    pids = [child._pid for child in reader.processes._children]
    await reader.processes.give(page(0, 10))
    for pid in pids:
        os.kill(pid, signal.SIGTERM)  # what a terminal sends to all of a group: the server decides
    await asyncio.wait_for(reader.processes.close(), 60)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(("cores", "expected"), [(1, 0), (2, 2), (64, 4)])
def test_how_many(monkeypatch: pytest.MonkeyPatch, cores: int, expected: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(reading.sys, "platform", "linux")
    assert reading.processors() == expected
