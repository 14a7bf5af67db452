"""Large answers are compressed for clients that take gzip.

What is one piece of bytes is compressed off the event loop. Lists, which may have any length, are compressed as the
client takes them, 64 KB in a tenth of a millisecond: so there is never more of one than what is just being sent,
however many ask for it and do not read. To encrypt what is left then takes less than the whole would have.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, Protocol

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response

THRESHOLD: Final = 128 * 1024
VARY_BY_ENCODING: Final = (b"vary", b"Accept-Encoding")
_LEVEL: Final = 1
_SLICE: Final = 64 * 1024
_GZIP: Final = zlib.MAX_WBITS + 16


def is_worth_compressing(request: APIRequest, response: Response) -> bool:
    """Whether the answer is large and the client takes gzip."""
    size = response.length if response.parts is not None else len(response.body)
    return (
        (size is None or size >= THRESHOLD)
        and response.stream is None
        and _takes_gzip(request.headers.get(b"accept-encoding", b""))
    )


def _takes_gzip(header: bytes) -> bool:
    for clause in header.split(b","):
        name, _, parameters = clause.partition(b";")
        if name.strip() == b"gzip":
            return parameters.replace(b" ", b"") not in (b"q=0", b"q=0.0")
    return False


async def compress(response: Response) -> Response:
    """The same answer, compressed."""
    pieces = response.parts
    headers = [*response.headers, (b"content-encoding", b"gzip"), VARY_BY_ENCODING]
    if pieces is not None:
        return Response(response.status, b"", response.content_type, headers, parts=_compressed(pieces), length=None)

    body = await asyncio.get_running_loop().run_in_executor(None, _compressor(), response.body)
    return Response(response.status, body, response.content_type, headers)


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Most pieces give no bytes yet. That is yielded as well, for whoever sends them to look at the time in between."""
    writer = _stream()
    for piece in pieces:
        for at in range(0, len(piece), _SLICE):
            yield writer.compress(memoryview(piece)[at : at + _SLICE])
    yield writer.flush()


class _Stream(Protocol):
    def compress(self, data: memoryview, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _stream() -> _Stream:
    """The same for what comes in pieces."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.compressobj(_LEVEL, wbits=_GZIP)
    stream: _Stream = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    return stream


def gzipped(data: bytes) -> bytes:
    """The data compressed; to be called in a thread."""
    return _compressor()(data)


@cache
def _compressor() -> Callable[[bytes], bytes]:
    """The fastest gzip there is."""
    try:
        from isal import igzip
    except ImportError:
        import gzip

        return lambda data: gzip.compress(data, _LEVEL)
    return lambda data: bytes(igzip.compress(data, _LEVEL))
