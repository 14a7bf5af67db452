"""What a connection wants done to a piece of body before it is written: a function, and a name to know it by.

Frames are made once and sent to many. So two connections that want the same must be seen to want the same: what is kept
for one is found for the other by the name of its framing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple


class Framing(NamedTuple):
    """A way to frame; its name is its own among all framings."""

    name: str
    frame: Callable[[bytes], bytes]


def chunk(data: bytes) -> bytes:
    """A piece of a chunked body, framed; made once, it may go to many clients."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk(trailers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """What ends a chunked body. Trailers are taken as they are: whoever read them has checked them."""
    if not trailers:
        return b"0\r\n\r\n"
    return b"0\r\n%b\r\n\r\n" % b"\r\n".join(map(b": ".join, trailers))


def _leave(data: bytes) -> bytes:
    return data


CHUNKED: Final = Framing("chunked", chunk)
UNFRAMED: Final = Framing("unframed", _leave)
"""For a body that ends with its connection."""
