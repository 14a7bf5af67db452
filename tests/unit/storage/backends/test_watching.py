import asyncio

import pytest

from pilothouse.storage.backends.contract import Unavailable
from pilothouse.storage.backends.watching import Progress


async def test_waits_until_the_store_has_passed_a_revision():
    progress = Progress()
    progress.receive([], 3)
    await progress.beyond(2)
    waiting = asyncio.create_task(progress.beyond(3))
    await asyncio.sleep(0)
    assert not waiting.done()
    progress.receive([], 4)
    await waiting


async def test_a_broken_feed_is_told_after_all_that_came_before():
    progress = Progress()
    progress.receive([], 3)
    progress.fail(Unavailable("gone"))
    await progress.beyond(2)
    with pytest.raises(Unavailable):
        await progress.beyond(3)
