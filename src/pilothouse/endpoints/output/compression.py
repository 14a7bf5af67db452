"""Large answers are compressed for clients that take gzip, off the event loop."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response

THRESHOLD: Final = 128 * 1024
VARY_BY_ENCODING: Final = (b"vary", b"Accept-Encoding")
_LEVEL: Final = 1
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
    if pieces is not None and response.length is None:
        return Response(response.status, b"", response.content_type, headers, parts=_compressed(pieces), length=None)

    def work() -> bytes:
        return _compressor()(response.body if pieces is None else b"".join(pieces))

    body = await asyncio.get_running_loop().run_in_executor(None, work)
    return Response(response.status, body, response.content_type, headers)


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What is made as the client takes it is compressed likewise.

    Nothing comes of most pieces, which is given as well: whoever takes it looks at the time in between.
    """
    writer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    for piece in pieces:
        yield writer.compress(piece)
    yield writer.flush()


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
