"""``/debug/pprof/``: where the server spends its time, what its memory holds, where its threads are.

A server of several processes shows all of them, whichever answers: stacks of a profile begin with the process they are
from, and other pages have a part for each.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT, text_response
from pilothouse.machinery.pprof import CONTENTION, PROCESSOR, Samples, encode, sample, sample_values
from pilothouse.machinery.stall_meter import StallMeter
from pilothouse.machinery.thread_frames import frames_of
from pilothouse.net.messages import Response
from pilothouse.server.routes import PathMux

Everywhere = Callable[[str, Callable[..., Awaitable[Any]], float], Callable[..., Awaitable[list[Any]]]]
"""Makes of a question's name, its answer here and the seconds it may take what asks all processes of the server."""
_PREFIX: Final = "/debug/pprof/"
_DEFAULT_SECONDS: Final = 30
_MOST_SECONDS: Final = 300
_PATIENCE: Final = 30.0
_SHOWN_TYPES: Final = 200
_SLICE: Final = 20_000
_INDEX: Final = b"""profile    processor time, sampled for ?seconds=30; go tool pprof and speedscope open it
block      what held the event loop longer than 20 ms, with --contention-profiling; they open it, too
heap       objects by type
goroutine  where every thread is
"""


class ProfilingPages:
    """The pages, on as many muxes as they are wanted."""

    def __init__(self, stalls: StallMeter, everywhere: Everywhere) -> None:
        self._stalls = stalls
        self._samples = everywhere("profile", _samples, _MOST_SECONDS + _PATIENCE)
        self._holds = everywhere("holds", self._own_holds, _PATIENCE)
        self._types = everywhere("heap", _types, _PATIENCE)
        self._stacks = everywhere("threads", _stacks, _PATIENCE)

    def install(self, routes: PathMux) -> None:
        """Add the pages."""
        routes.add("/debug/pprof", _to_index, hidden=True)
        routes.add_prefix(_PREFIX, _index, hidden=True)
        pages = {"profile": self._profile, "block": self._block, "heap": self._heap, "goroutine": self._threads}
        for name, page in pages.items():
            routes.add(_PREFIX + name, page, hidden=True)

    async def _profile(self, request: APIRequest) -> Response:
        seconds = _seconds(request)
        found = [(pid, sample_values(seen)) for pid, seen in await self._samples(seconds)]
        return await _attached("profile", encode, _told_apart(found), PROCESSOR, seconds)

    async def _block(self, request: APIRequest) -> Response:
        return await _attached("block", encode, _told_apart(await self._holds()), CONTENTION, self._stalls.seconds)

    async def _heap(self, request: APIRequest) -> Response:
        return _parts(await self._types())

    async def _threads(self, request: APIRequest) -> Response:
        return _parts(await self._stacks())

    async def _own_holds(self) -> tuple[int, Samples]:
        return os.getpid(), dict(self._stalls.stacks)


async def _index(request: APIRequest) -> Response:
    if request.path != _PREFIX:
        return text_response(404, b"Unknown profile\n")
    return Response(200, _INDEX, PLAIN_TEXT)


async def _to_index(request: APIRequest) -> Response:
    where = [(b"location", _PREFIX.encode())]
    if request.method not in ("GET", "HEAD"):
        return Response(302, content_type=b"", headers=where)
    return Response(302, b'<a href="%b">Found</a>.\n\n' % _PREFIX.encode(), b"text/html; charset=utf-8", where)


async def _samples(seconds: float) -> tuple[int, dict[Any, int]]:
    return os.getpid(), dict(await asyncio.to_thread(sample, seconds))


async def _types() -> tuple[int, str]:
    """Counted in slices, with turns of the loop between them."""
    counts, sizes = Counter[str](), Counter[str]()
    objects = gc.get_objects()
    for start in range(0, len(objects), _SLICE):
        for each in objects[start : start + _SLICE]:
            kind = type(each)
            name = f"{kind.__module__}.{kind.__qualname__}"
            counts[name] += 1
            sizes[name] += sys.getsizeof(each, 0)
        await asyncio.sleep(0)
    del objects
    lines = [f"{'bytes':>12} {'objects':>10} type"]
    lines += [f"{size:12} {counts[name]:10} {name}" for name, size in sizes.most_common(_SHOWN_TYPES)]
    return os.getpid(), "\n".join(lines) + "\n"


async def _stacks() -> tuple[int, str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    text = ""
    for ident in sys._current_frames():
        frames = [(frame, frame.f_lineno) for frame in reversed(frames_of(ident))]
        text += f"thread {names.get(ident, ident)}:\n{''.join(traceback.StackSummary.extract(frames).format())}\n"
    return os.getpid(), text


def _told_apart(found: list[tuple[int, Samples]]) -> Samples:
    """The samples of all, of which each begins with its process where there are several."""
    if len(found) == 1:
        return found[0][1]
    return {
        (*stack, ("", f"process {pid}", 0, 0)): values for pid, samples in found for stack, values in samples.items()
    }


def _parts(found: list[tuple[int, str]]) -> Response:
    if len(found) == 1:
        return Response(200, found[0][1].encode(), PLAIN_TEXT)
    return Response(200, "\n".join(f"process {pid}:\n{text}" for pid, text in found).encode(), PLAIN_TEXT)


async def _attached(name: str, make: Callable[..., bytes], *words: Any) -> Response:
    headers = [(b"content-disposition", f'attachment; filename="{name}"'.encode())]
    return Response(200, await asyncio.to_thread(make, *words), b"application/octet-stream", headers)


def _seconds(request: APIRequest) -> float:
    try:
        given = int(request.options.text("seconds") or _DEFAULT_SECONDS)
    except ValueError:
        given = _DEFAULT_SECONDS
    return float(min(given if given > 0 else _DEFAULT_SECONDS, _MOST_SECONDS))
