"""Long texts are worked on in a thread, short ones at once."""

from __future__ import annotations

import threading

import pytest

from pilothouse.endpoints.offloading import offload
from pilothouse.machinery.workers import LONG


def thread_and_length(data: bytes) -> tuple[int, int]:
    return threading.get_ident(), len(data)


@pytest.mark.parametrize(("length", "here"), [(0, True), (LONG - 1, True), (LONG, False)])
async def test_where_work_is_done(length: int, here: bool) -> None:
    thread, seen = await offload(thread_and_length, b"x" * length)
    assert seen == length
    assert (thread == threading.get_ident()) is here


@pytest.mark.parametrize("length", [1, LONG])
async def test_errors_come_through(length: int) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await offload(int, b"x" * length)
