"""A clock that runs and can skip time, alone and under a living cluster."""

from __future__ import annotations

import asyncio
import time

from pilothouse.testing.client import Client
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.running_clock import RunningClock

MINUTE = 60.0


async def test_alarms_ring_in_order_when_time_is_skipped() -> None:
    clock, rung = RunningClock(), list[str]()
    clock.delay(2 * MINUTE, lambda: rung.append("second"))
    clock.delay(MINUTE, lambda: rung.append("first"))
    clock.delay(MINUTE, lambda: rung.append("never")).cancel()
    before = clock.monotonic(), clock.now().seconds
    await clock.advance_here(MINUTE + 1)
    assert rung == ["first"]
    await clock.advance_here(MINUTE)
    assert rung == ["first", "second"]
    assert clock.monotonic() - before[0] >= 2 * MINUTE
    assert clock.now().seconds - before[1] >= 2 * MINUTE


async def test_time_also_passes_by_itself() -> None:
    clock = RunningClock()
    await clock.sleep(0.01)
    rung = asyncio.Event()
    clock.delay(0, rung.set)
    await rung.wait()
    assert abs(clock.time_ns() - time.time_ns()) < 60e9


def test_a_cron_job_starts_when_the_time_until_then_is_skipped() -> None:
    clock = RunningClock()
    with InProcessServer(living=True, clock=clock) as server:
        client = Client(server.caller())
        pod = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
        spec = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": pod}}}
        made = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "n"}, "spec": spec}
        client.create(made)
        assert client.list("batch/v1/Job") == []
        clock.advance(10 * MINUTE)
        client.wait_for("batch/v1/CronJob", "n", lambda found: bool(found.get("status", {}).get("lastScheduleTime")))
