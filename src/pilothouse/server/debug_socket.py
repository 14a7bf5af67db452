"""``--debug-socket-path``: pages for debugging on a Unix socket, for whoever may open the file, without a login.

It is there when the server itself is stuck behind its filters, or nobody has credentials at hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.net.messages import Response
from pilothouse.net.server import HttpServer
from pilothouse.server.routes import PathMux

logger = logging.getLogger(__name__)


class DebugSocket:
    """Serves the routes of a mux. To be made on the event loop."""

    def __init__(self, path: str, routes: PathMux) -> None:
        self._path, self._routes = path, routes
        self._http = HttpServer(self._serve, request_type=APIRequest)
        self._listening: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen, in the place of a file that an earlier server has left. One that cannot be made is logged."""
        try:
            with suppress(FileNotFoundError):
                os.remove(self._path)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.bind(self._path)
                os.chmod(self._path, 0o600)
            except OSError:
                sock.close()
                raise
            self._listening = await asyncio.get_running_loop().create_unix_server(self._http.protocol, sock=sock)
        except OSError as error:
            logger.error("--debug-socket-path=%s: %s", self._path, error.strerror or error)

    async def close(self) -> None:
        """End it, and remove the file."""
        if self._listening is None:
            return
        self._listening.close()
        await self._http.close()
        with suppress(OSError):
            os.remove(self._path)

    async def _serve(self, request: APIRequest) -> Response:
        found = self._routes.find(request.path)
        return text_response(404, b"404 page not found\n") if found is None else await found(request)
