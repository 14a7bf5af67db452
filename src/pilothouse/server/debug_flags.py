"""``/debug/flags/v``: how much is logged, changed while the server runs, in all of its processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.verbosity import present_level, set_verbosity
from pilothouse.net.messages import Response
from pilothouse.server.routes import PathMux

_INDEX: Final = b"""<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""
_MOST: Final = 2**31 - 1


async def take_verbosity(verbosity: int) -> None:
    """Log so much from now on, in this process."""
    set_verbosity(verbosity)


async def tell_level() -> int:
    """How much is logged in this process, for those that join it later."""
    return present_level()


def install_debug_flags(routes: PathMux, set_everywhere: Callable[[int], Awaitable[Any]]) -> None:
    """Add the pages. ``set_everywhere`` has every process take a verbosity."""

    async def set_v(request: APIRequest) -> Response:
        return await _set_verbosity(request, set_everywhere)

    routes.add("/debug/flags", _index, hidden=True)
    routes.add_prefix("/debug/flags/", _index, hidden=True)
    routes.add("/debug/flags/v", set_v, hidden=True)


async def _index(request: APIRequest) -> Response:
    return Response(200, _INDEX, b"text/html; charset=utf-8")


async def _set_verbosity(request: APIRequest, set_everywhere: Callable[[int], Awaitable[Any]]) -> Response:
    if request.method != "PUT":
        return _text(406, "unsupported http method")
    given = (await request.body(64)).decode("utf-8", "replace")
    if not (given.isascii() and given.isdigit()):
        return _text(400, f"strconv.ParseUint: parsing {quote(given)}: invalid syntax")
    if int(given) > _MOST:
        return _text(400, f"strconv.ParseUint: parsing {quote(given)}: value out of range")
    await set_everywhere(int(given))
    return _text(200, f"successfully set klog.logging.verbosity to {given}")


def _text(status: int, words: str) -> Response:
    return Response(status, f"{words}\n".encode(), b"text/plain", [NO_SNIFFING])
