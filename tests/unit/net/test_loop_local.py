"""Each loop has one of its own, in whatever thread it runs."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pilothouse.net.loop_local import LoopLocal


async def _twice(local: LoopLocal[list[asyncio.AbstractEventLoop]]) -> list[asyncio.AbstractEventLoop]:
    found = local.of(asyncio.get_running_loop())
    assert local.of(asyncio.get_running_loop()) is found
    return found


def test_a_loop_finds_what_was_made_for_it() -> None:
    local: LoopLocal[list[asyncio.AbstractEventLoop]] = LoopLocal(lambda loop: [loop])
    with asyncio.Runner() as first, asyncio.Runner() as second, ThreadPoolExecutor(1) as thread:
        loops = [first.get_loop(), second.get_loop()]
        assert thread.submit(first.run, _twice(local)).result() == [loops[0]]
        assert second.run(_twice(local)) == [loops[1]]


def test_two_kinds_of_things_do_not_mix() -> None:
    one, other = LoopLocal(lambda loop: "one"), LoopLocal(lambda loop: "other")

    async def both() -> tuple[str, str]:
        loop = asyncio.get_running_loop()
        return one.of(loop), other.of(loop)

    assert asyncio.run(both()) == ("one", "other")
