"""What a request keeps while it is served."""

from __future__ import annotations

import asyncio
import weakref

from pilothouse.endpoints.request import APIRequest


class Leaf:
    """Something of which it can be told whether it is still there."""


async def test_large_objects_of_an_attempt_before_are_freed() -> None:
    request = APIRequest.__new__(APIRequest)
    request.made = None
    leaf = Leaf()
    gone = weakref.ref(leaf)
    kept = {"kept": True}
    request.note_made(kept, {"a": [leaf]})
    del leaf
    request.note_made(kept, {"b": []})
    while gone() is not None:
        await asyncio.sleep(0.01)
    assert request.made == [kept, {"b": []}]
    assert kept == {"kept": True}
