"""Whose turn it is: by priority, after a failure, and when the cluster changes."""

from __future__ import annotations

import asyncio

import pytest

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
    queue.put_aside(pod.key)
    assert await is_idle(queue)
    queue.move(lambda info: info.name == "b")
    assert await is_idle(queue)
    queue.move()
    assert (await queue.pop()).name == "a", "nobody else wants a node, so it need not back off"


async def test_back_off_lets_others_go_first(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    first, second = pods(cluster, "a", "b")
    queue.add(first)
    await queue.pop()
    queue.move()
    queue.put_aside(first.key)
    queue.add(second)
    assert [(await queue.pop()).name for _ in range(2)] == ["b", "a"]


async def test_errors_are_waited_for(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    [pod] = pods(cluster, "a")
    queue.add(pod)
    await queue.pop()
    queue.put_aside(pod.key, failed=True)
    queue.move()
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
        queue.move()


async def test_namespaces_take_turns(cluster: Cluster, clock: FakeClock) -> None:
    queue = SchedulingQueue(clock)
    for name in ("a", "b", "c", "d"):
        queue.add(cluster.pod(name, namespace="many"))
    for name in ("e", "f"):
        queue.add(cluster.pod(name, namespace="few"))
    queue.delete(("many", "b"))
    assert [(await queue.pop()).name for _ in range(5)] == ["a", "e", "f", "c", "d"]
