import asyncio

import pytest

from pilothouse.storage.backends.contract import FutureRevision, Unavailable
from pilothouse.storage.progress import Progress


async def test_waiters_are_released_in_time():
    progress = Progress()
    progress.advance(5)
    await progress.reach(5)
    waits = [asyncio.create_task(progress.reach(revision)) for revision in (8, 6, 7)]
    await asyncio.sleep(0)
    progress.advance(7)
    await asyncio.gather(waits[1], waits[2])
    assert not waits[0].done()
    progress.advance(9)
    await waits[0]


async def test_too_late_is_told_with_the_current_revision():
    progress = Progress()
    progress.advance(5)
    with pytest.raises(FutureRevision) as caught:
        await progress.reach(6, 0)
    assert (caught.value.requested, caught.value.current) == (6, 5)
    progress.advance(6)


async def test_failure_is_told_to_all():
    progress = Progress()
    waits = [asyncio.create_task(progress.reach(revision)) for revision in (1, 2)]
    await asyncio.sleep(0)
    progress.fail(Unavailable("gone"))
    assert [type(result) for result in await asyncio.gather(*waits, return_exceptions=True)] == [Unavailable] * 2


async def test_never_goes_back():
    progress = Progress()
    progress.advance(5)
    progress.advance(3)
    assert progress.revision == 5


async def test_what_begins_anew_may_be_further_back() -> None:
    progress = Progress()
    progress.advance(10)
    progress.restart(4)
    assert progress.revision == 4
    waiting = asyncio.create_task(progress.reach(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    progress.advance(5)
    await waiting
