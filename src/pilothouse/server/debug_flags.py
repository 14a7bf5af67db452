"""``/debug/flags/v``: how much is logged, changed while the server runs."""

from __future__ import annotations

from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.verbosity import set_verbosity
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer

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


def install_debug_flags(server: GenericAPIServer) -> None:
    """Add the pages."""
    server.routes.add("/debug/flags", _index, hidden=True)
    server.routes.add_prefix("/debug/flags/", _index, hidden=True)
    server.routes.add("/debug/flags/v", _set_verbosity, hidden=True)


async def _index(request: APIRequest) -> Response:
    return Response(200, _INDEX, b"text/html; charset=utf-8")


async def _set_verbosity(request: APIRequest) -> Response:
    if request.method != "PUT":
        return _text(406, "unsupported http method")
    given = (await request.body(64)).decode("utf-8", "replace")
    if not (given.isascii() and given.isdigit()):
        return _text(400, f"strconv.ParseUint: parsing {quote(given)}: invalid syntax")
    if int(given) > _MOST:
        return _text(400, f"strconv.ParseUint: parsing {quote(given)}: value out of range")
    set_verbosity(int(given))
    return _text(200, f"successfully set klog.logging.verbosity to {given}")


def _text(status: int, words: str) -> Response:
    return Response(status, words.encode(), b"text/plain", [NO_SNIFFING])
