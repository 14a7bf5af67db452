"""What the event loop and the threads of a database have in common: answering futures, and parting without blocking."""

from __future__ import annotations

import asyncio
import threading
from typing import Any


def resolve(future: asyncio.Future[Any], result: object) -> None:
    """Answer a future, unless whoever waited has gone."""
    if not future.done():
        future.set_result(result)


def reject(future: asyncio.Future[Any], error: BaseException) -> None:
    """Fail a future, unless whoever waited has gone."""
    if not future.done():
        future.set_exception(error)


async def join(thread: threading.Thread) -> None:
    """Wait for a thread that has nothing left to do but to return."""
    while thread.is_alive():  # noqa: ASYNC110 - a thread sets no events once it is done
        await asyncio.sleep(0)
