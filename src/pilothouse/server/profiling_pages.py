"""``/debug/pprof/``: where the server spends its time, what its memory holds, where its threads are."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import traceback
from collections import Counter
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT, text_response
from pilothouse.machinery.pprof import encode, sample
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer

_PREFIX: Final = "/debug/pprof/"
_DEFAULT_SECONDS: Final = 30
_MOST_SECONDS: Final = 300
_SHOWN_TYPES: Final = 200
_SLICE: Final = 20_000
_INDEX: Final = b"""profile    processor time, sampled for ?seconds=30; go tool pprof and speedscope open it
heap       objects by type
goroutine  where every thread is
"""


def install_profiling_pages(server: GenericAPIServer) -> None:
    """Add the pages."""
    server.routes.add("/debug/pprof", _index, hidden=True)
    server.routes.add_prefix(_PREFIX, _index, hidden=True)
    for name, page in (("profile", _profile), ("heap", _heap), ("goroutine", _threads)):
        server.routes.add(_PREFIX + name, page, hidden=True)


async def _index(request: APIRequest) -> Response:
    if request.path.rstrip("/") != "/debug/pprof":
        return text_response(404, b"Unknown profile\n")
    return Response(200, _INDEX, PLAIN_TEXT)


async def _profile(request: APIRequest) -> Response:
    seconds = _seconds(request)
    seen = await asyncio.to_thread(sample, seconds)
    body = await asyncio.to_thread(encode, seen, seconds)
    headers = [(b"content-disposition", b'attachment; filename="profile"')]
    return Response(200, body, b"application/octet-stream", headers)


def _seconds(request: APIRequest) -> float:
    try:
        given = int(request.options.text("seconds") or _DEFAULT_SECONDS)
    except ValueError:
        given = _DEFAULT_SECONDS
    return float(min(given if given > 0 else _DEFAULT_SECONDS, _MOST_SECONDS))


async def _heap(request: APIRequest) -> Response:
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
    return Response(200, ("\n".join(lines) + "\n").encode(), PLAIN_TEXT)


async def _threads(request: APIRequest) -> Response:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    text = ""
    for ident, frame in sys._current_frames().items():
        text += f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n"
    return Response(200, text.encode(), PLAIN_TEXT)
