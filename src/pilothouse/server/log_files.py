"""``/logs/``: the log files of this machine, where ``--enable-logs-handler`` asks for it.

Folders are shown as pages of links, files as they are. Nothing above the folder is served: ``..`` is refused, and so is
a link that leads out of it.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.net.dates import http_date
from pilothouse.net.messages import BodyWriter, Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import only_get

LOG_FOLDER: Final = Path("/var/log")
_PREFIX: Final = "/logs/"
_HTML: Final = b"text/html; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"
_HEAD: Final = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n'
_PIECE: Final = 256 * 1024
_NOT_FOUND: Final = b"404 page not found\n"


def install_log_files(server: GenericAPIServer, folder: Path = LOG_FOLDER) -> None:
    """Add the pages."""

    async def serve(request: APIRequest) -> Response:
        return await _serve(folder, request)

    server.routes.add("/logs", only_get(serve))
    server.routes.add_prefix(_PREFIX, only_get(serve), hidden=True)


async def _serve(folder: Path, request: APIRequest) -> Response:
    wanted = request.path.removeprefix("/logs").lstrip("/")
    if ".." in wanted.split("/"):
        return text_response(400, b"invalid URL path\n")
    try:
        return await asyncio.to_thread(_answer, folder, wanted, request.path.endswith("/"))
    except PermissionError:
        return text_response(403, b"403 Forbidden\n")
    except (OSError, ValueError):  # not there, too long a name, a link that leads out, or no name at all
        return text_response(404, _NOT_FOUND)


def _answer(folder: Path, wanted: str, as_folder: bool) -> Response:
    """Looks at files: not to be called on the event loop."""
    root = folder.resolve(strict=True)
    path = (root / wanted).resolve(strict=True)
    if not path.is_relative_to(root):
        raise FileNotFoundError(wanted)
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        if wanted and not as_folder:
            return _redirect(f"{path.name}/")
        return Response(200, _listing(path).encode(), _HTML)
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(wanted)
    if as_folder:
        return _redirect(f"../{path.name}")
    headers = [(b"last-modified", http_date(found.st_mtime))]
    from mimetypes import guess_type  # reads the tables of the system

    kind = guess_type(path.name)[0] or _TEXT
    return Response(200, b"", kind.encode(), headers, stream=_sender(path.open("rb"), found.st_size))


def _redirect(where: str) -> Response:
    return Response(301, b"", _HTML, [(b"location", quote(where).encode())])


def _listing(path: Path) -> str:
    names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in path.iterdir())
    from html import escape  # only pages of folders need it

    links = "".join(f'<a href="{quote(name)}">{escape(name)}</a>\n' for name in names)
    return f"{_HEAD}{links}</pre>\n"


def _sender(file: BinaryIO, size: int) -> Callable[[BodyWriter], Awaitable[None]]:
    """Sends the file as long as it was: what is being written to it meanwhile is for the next request."""

    async def send(writer: BodyWriter) -> None:
        left = size
        with file:
            while left > 0 and (data := await asyncio.to_thread(file.read, min(_PIECE, left))):
                left -= len(data)
                writer.write(data)
                await writer.drain()

    return send
