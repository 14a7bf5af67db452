"""What the scheduler tells of pods, in a real store."""

from __future__ import annotations

import asyncio
from typing import Any

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.machinery.supervision import Supervisor
from pilothouse.simulation.scheduler.events import SchedulingEvents
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.in_process import InProcessServer

POD = {
    "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"},
    "spec": {"containers": []},
}


async def test_a_pod_that_is_tried_all_the_time_fills_no_store(supervisor: Supervisor) -> None:
    """A series is written when its count has doubled, not each time."""
    async with InProcessServer() as server:
        clients, clock = LoopbackClients(server.process.cluster.handler), FakeClock()
        events, pod = SchedulingEvents(clients.scheduler(), supervisor, clock, "test"), PodInfo(POD)
        stored = clients.api_server().of("events.k8s.io", "v1", "events")

        async def told(note: str) -> dict[str, Any]:
            """The event that says so, once all that was recorded before it has been dealt with."""
            clock.advance(0.001)  # events are named by it
            events.record(pod, "Warning", "FailedScheduling", "Scheduling", note)
            async with asyncio.timeout(120):
                while True:
                    found = [each async for each in stored.items("default") if each["note"] == note]
                    if found:
                        return found[0]

        first = await told("none fits")
        for _ in range(900):
            events.record(pod, "Warning", "FailedScheduling", "Scheduling", "none fits")
        await told("another")
        event = await stored.get("default", first["metadata"]["name"])
        assert event["series"]["count"] == 512
        clock.advance(300.0)
        events.record(pod, "Warning", "FailedScheduling", "Scheduling", "none fits")
        await told("much later")
        clock.advance(300.0)
        events.record(pod, "Warning", "FailedScheduling", "Scheduling", "none fits")
        await told("the last")
        event = await stored.get("default", first["metadata"]["name"])
        assert event["series"]["count"] == 903, "what goes on is written every few minutes"
