"""Closing what was opened, whatever fails."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pilothouse.machinery.closing import Closing


async def test_the_newest_is_closed_first_and_only_once() -> None:
    closed: list[str] = []
    closing = Closing("test")
    for name in ("store", "caches", "sockets"):

        async def close(name: str = name) -> None:
            closed.append(name)

        closing.add(name, close)
    await closing.close()
    await closing.close()
    assert closed == ["sockets", "caches", "store"]


async def test_a_failure_is_logged_and_the_rest_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("store")

    async def fail() -> None:
        raise ValueError("stuck")

    closing = Closing("process")
    closing.add("the store", close)
    closing.add("the sockets", fail)
    with caplog.at_level(logging.ERROR):
        await closing.close()
    assert closed == ["store"]
    assert "process: closing the sockets failed" in caplog.text


async def test_the_rest_is_closed_even_if_closing_is_cancelled() -> None:
    closed: list[str] = []
    waiting = asyncio.Event()

    async def close() -> None:
        closed.append("store")

    async def wait_for_ever() -> None:
        waiting.set()
        await asyncio.Event().wait()

    closing = Closing("process")
    closing.add("the store", close)
    closing.add("the sockets", wait_for_ever)
    task = asyncio.ensure_future(closing.close())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == ["store"]
