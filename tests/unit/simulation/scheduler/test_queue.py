"""Whose turn it is: by priority, after a failure, and when the cluster changes."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.simulation.scheduler.changes import Change
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.queue import SchedulingQueue
from pilothouse.testing.fake_clock import FakeClock

from .conftest import Cluster


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def pods(cluster: Cluster, *names: str, priority: int = 0) -> list[PodInfo]:
    return [cluster.pod(name, priority=priority) for name in names]


async def is_idle(queue: SchedulingQueue) -> bool:
    """Whether nobody's turn comes however long we wait."""
    popping = asyncio.ensure_future(queue.pop())
    for _ in range(5):
        await asyncio.sleep(0)
    if popping.done():
        return False
    popping.cancel()
    return True


async def test_the_most_important_goes_first(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    for pod in (*pods(cluster, "a", "b"), *pods(cluster, "c", priority=1)):
        queue.add(pod)
    assert [(await queue.pop()).name for _ in range(3)] == ["c", "a", "b"]


async def test_without_a_change_there_is_no_second_try(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    await queue.pop()
    queue.put_aside(pod.key, helped_by={Change.NODES})
    assert await is_idle(queue)
    queue.move(Change.ROOM)
    assert await is_idle(queue)
    queue.move(Change.NODES)
    assert (await queue.pop()).name == "a", "nobody else wants a node, so it need not back off"


async def test_back_off_lets_others_go_first(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    first, second = pods(cluster, "a", "b")
    queue.add(first)
    await queue.pop()
    queue.move(Change.ROOM)
    queue.put_aside(first.key)
    queue.add(second)
    assert [(await queue.pop()).name for _ in range(2)] == ["b", "a"]


async def test_errors_are_waited_for(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    await queue.pop()
    queue.put_aside(pod.key, failed=True)
    queue.move(Change.ROOM)
    assert await is_idle(queue)
    clock.advance(1.0)
    assert (await queue.pop()).name == "a"


async def test_nobody_is_forgotten(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    await queue.pop()
    queue.put_aside(pod.key)
    clock.advance(300.0)
    assert (await queue.pop()).name == "a"


async def test_thousands_of_tries_end_no_queue(cluster: Cluster, clock: FakeClock) -> None:
    """Where something changes all the time, a pod that nobody competes with comes to that within minutes."""
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    for _ in range(1_100):
        assert await queue.pop() is pod
        queue.put_aside(pod.key)
        queue.move(Change.ROOM)


async def test_namespaces_take_turns(cluster: Cluster, clock: FakeClock) -> None:
    """Very many pods of one namespace keep those of another waiting for one of them."""
    queue = SchedulingQueue(clock)
    for number in range(1_000):
        queue.add(cluster.pod(f"many{number}"))
    assert (await queue.pop()).name == "many0"
    for name in ("a", "b"):
        queue.add(cluster.pod(name, namespace="other"))
    queue.add(cluster.pod("urgent", priority=1))
    assert [(await queue.pop()).name for _ in range(6)] == ["urgent", "many1", "a", "many2", "b", "many3"]


async def test_who_was_tried_is_behind_who_came_meanwhile(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    first, second = pods(cluster, "a", "b")
    queue.add(first)
    await queue.pop()
    clock.advance(1.0)
    queue.add(second)
    queue.put_aside(first.key)
    queue.move(Change.ROOM)
    clock.advance(1.0)
    assert [(await queue.pop()).name for _ in range(2)] == ["b", "a"]


async def test_what_changes_meanwhile_counts_if_it_may_help(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    near, far = pods(cluster, "near", "far")
    for pod, helped_by in ((near, {Change.NODES, Change.ROOM}), (far, {Change.NODES})):
        queue.add(pod)
        assert await queue.pop() is pod
        queue.move(Change.ROOM)
        queue.put_aside(pod.key, helped_by=helped_by)
    assert await queue.pop() is near
    assert await is_idle(queue)


async def test_what_has_gone_is_not_brought_back(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    await queue.pop()
    queue.put_aside(pod.key)
    queue.delete(pod.key)
    queue.move(Change.NODES)
    clock.advance(300.0)
    assert await is_idle(queue)
