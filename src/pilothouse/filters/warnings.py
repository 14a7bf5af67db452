"""Warnings collected on the way become ``Warning`` headers of the answer, whatever the answer is."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

_TOTAL_LIMIT = 4 * 1024
_SHORT = 256


def with_warnings(following: Handler) -> Handler:
    """Attach what ``request.warn`` collected."""

    async def handle(request: APIRequest) -> Response:
        response = await following(request)
        if request.warnings:
            response.headers += warning_headers(request.warnings)
        return response

    return handle


def warning_headers(warnings: list[str]) -> list[tuple[bytes, bytes]]:
    """One header a warning; when they are too long together, each is cut, and then the rest is dropped."""
    texts = list(dict.fromkeys(warnings))
    if sum(len(text.encode()) for text in texts) > _TOTAL_LIMIT:
        texts = [text[:_SHORT] for text in texts]
    headers: list[tuple[bytes, bytes]] = []
    total = 0
    for text in texts:
        header = quote_warning(text)
        total += len(header)
        if total > _TOTAL_LIMIT:
            break
        headers.append((b"warning", header))
    return headers


def quote_warning(text: str) -> bytes:
    """``299 - "text"``, control characters made harmless."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode()
