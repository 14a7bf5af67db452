"""Hooks after the start and before the end."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.server.health import HealthChecks
from pilothouse.server.hooks import Hooks


async def test_hooks_are_checks_until_they_are_done() -> None:
    checks = HealthChecks()
    hooks = Hooks(checks)
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()

    hooks.add_post_start("slow", slow)
    assert checks.names("readyz") == ["poststarthook/slow"]
    (check,) = checks._checks["readyz"]
    running = asyncio.create_task(hooks.run_post_start())
    await asyncio.sleep(0)
    assert check.check() == "not finished"
    go.set()
    await running
    assert check.check() == ""


async def test_a_hook_that_fails_is_raised() -> None:
    hooks = Hooks(HealthChecks())

    async def bad() -> None:
        raise RuntimeError("no")

    hooks.add_post_start("bad", bad)
    with pytest.raises(RuntimeError) as failure:
        await hooks.run_post_start()
    assert failure.value.__notes__ == ["in post-start hook bad"]
    with pytest.raises(ValueError, match="registered twice"):
        hooks.add_post_start("bad", bad)


async def test_the_stop_goes_on_when_a_hook_fails(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks(HealthChecks())
    ran: list[str] = []

    async def bad() -> None:
        raise RuntimeError("no")

    async def good() -> None:
        ran.append("good")

    hooks.add_pre_shutdown("bad", bad)
    hooks.add_pre_shutdown("good", good)
    await hooks.run_pre_shutdown()
    assert ran == ["good"]
    assert "pre-shutdown hook bad failed" in caplog.text
