"""Bodies that came compressed because we said that gzip is taken, as Go's clients say of themselves.

They are unpacked in pieces, between which others get their turn, and no further than the caller takes: a few kilobytes
may stand for gigabytes.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from pilothouse.net.dialing.failures import OutgoingError
from pilothouse.net.eager import ensure_task
from pilothouse.net.request_body import BodyTooLarge

ACCEPTED: Final = "gzip"
_PIECE: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_MAGIC: Final = b"\x1f\x8b\x08"


async def unpack(body: bytes, limit: int) -> bytes:
    """The plain bytes of a gzip stream. Raises OutgoingError in Go's words, and BodyTooLarge above the limit."""
    pieces: list[bytes] = []
    size = 0
    while body:
        if not body.startswith(_MAGIC[: len(body)]):
            raise OutgoingError("gzip: invalid header")
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            try:
                piece = stream.decompress(body, _PIECE)
            except zlib.error as error:
                raise OutgoingError(_as_go_says(error)) from None
            body = stream.unconsumed_tail
            size += len(piece)
            if size > limit:
                raise BodyTooLarge(limit)
            pieces.append(piece)
            if not piece and not body and not stream.eof:
                raise OutgoingError("unexpected EOF")
            if len(piece) == _PIECE:
                await ensure_task()
                await asyncio.sleep(0)
        body = stream.unused_data
    return b"".join(pieces)


def _as_go_says(error: zlib.error) -> str:
    if "incorrect data check" in str(error) or "incorrect length check" in str(error):
        return "gzip: invalid checksum"
    return "gzip: invalid header" if "header" in str(error) else "flate: corrupt input"
