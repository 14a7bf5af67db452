"""The page itself: HTML, styles and scripts from the package, for anybody who can reach the server.

They hold no secrets and say nothing of the cluster. Nothing but these files is ever loaded or run by the page: the
policy in their headers allows no other source, no inline script or style, no frame around it, and no strings that
become markup.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING, page_not_found, text_response
from pilothouse.net.messages import Response

PREFIX: Final = "/console/"
_TYPES: Final = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = (
    NO_SNIFFING,
    (b"content-security-policy", POLICY),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    body: bytes
    content_type: bytes
    etag: bytes


class Assets:
    """All files, read when the first is asked for."""

    def __init__(self) -> None:
        self._found: dict[str, Asset] | None = None

    async def serve(self, request: APIRequest) -> Response:
        """A file, or what there is to say instead."""
        if request.path == PREFIX[:-1]:
            return Response(301, b"", b"", [(b"location", PREFIX.encode()), *HEADERS])
        found = self._all().get(request.path.removeprefix(PREFIX) or "index.html")
        if found is None:
            return page_not_found()
        if request.method not in ("GET", "HEAD"):
            return text_response(405, b"405 method not allowed\n")
        headers = [*HEADERS, (b"cache-control", b"no-cache"), (b"etag", found.etag)]
        if request.headers.get(b"if-none-match") == found.etag:
            return Response(304, b"", b"", headers)
        return Response(200, found.body, found.content_type, headers)

    def _all(self) -> dict[str, Asset]:
        if self._found is None:
            folder = files("pilothouse.console") / "static"
            self._found = {each.name: _read(each.name, each.read_bytes()) for each in folder.iterdir()}
        return self._found


def _read(name: str, body: bytes) -> Asset:
    digest = hashlib.sha256(body).hexdigest()[:32]
    return Asset(body, _TYPES[name.rpartition(".")[2]], f'"{digest}"'.encode())
