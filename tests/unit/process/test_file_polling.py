"""Looking for changed files."""

from __future__ import annotations

import asyncio

from pilothouse.machinery.supervision import RestartPolicy, Supervisor
from pilothouse.process.file_polling import FilePolling


async def test_a_poller_that_fails_is_started_again_and_keeps_nobody_else_from_looking() -> None:
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001, most_seconds=0.001))
    failed, looked = asyncio.Event(), asyncio.Event()
    times = 0

    async def fail() -> None:
        nonlocal times
        times += 1
        if times > 1:
            failed.set()
        raise ValueError("unreadable")

    async def look() -> None:
        if times > 1:
            looked.set()

    polling = FilePolling(supervisor, 0.001, {"broken": fail, "sound": look})
    polling.start()
    await failed.wait()
    await looked.wait()
    await polling.close()
    assert not supervisor.unhealthy()
