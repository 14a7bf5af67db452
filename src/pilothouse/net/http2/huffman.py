"""The Huffman code of HPACK (RFC 7541, appendix B): canonical, so that the lengths of its codes say all.

Decoding goes byte by byte through a table of steps (where in the tree, which byte -> where, which letters) that is
filled as it is used; what clients send repeatedly is remembered whole. A long string takes 0.15 µs a byte:
`decode_ahead` decodes it piece by piece, and `decode` then finds it done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_LENGTHS: Final = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b0806060605050506"
    "06060606060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e060f05060506050606"
    "060507070606060506070605050607070707070f0b0e0d1c14161414161616171617171717171817181816171817171717151617"
    "1617171816151416161717151716161815161717151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a1819"
    "13151a1b1b1a1b1815151a1a1c1b1b1b14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
_END: Final = 256  # the symbol that never stands in a string
_MEMORABLE: Final = 2048  # a token, which many clients send with every request
_MAX_MEMORY: Final = 1 << 20
LONG: Final = 32
"""Strings from here on are worth decoding ahead, where there are many or they are very long."""
_PIECE: Final = 4096


class InvalidHuffman(ValueError):
    """No string of this code."""


class TooLong(ValueError):
    """More text than anybody wants."""


def _grow_tree() -> tuple[list[list[int]], frozenset[int]]:
    """Nodes as pairs of children (a symbol s as ~s), and the nodes at which a string may end."""
    nodes = [[0, 0]]
    code, length = 0, 0
    for symbol in sorted(range(257), key=lambda each: (_LENGTHS[each], each)):
        code <<= _LENGTHS[symbol] - length
        length = _LENGTHS[symbol]
        at = 0
        for bit in range(length - 1, 0, -1):
            side = code >> bit & 1
            if not nodes[at][side]:
                nodes.append([0, 0])
                nodes[at][side] = len(nodes) - 1
            at = nodes[at][side]
        nodes[at][code & 1] = ~symbol
        code += 1
    ends, at = [0], 0
    for _ in range(7):  # what pads a string is the beginning of the code of the end, all ones
        at = nodes[at][1]
        ends.append(at)
    return nodes, frozenset(ends)


_nodes, _ends = _grow_tree()
_steps: dict[int, tuple[int, bytes]] = {}


class _Memory(dict[bytes, bytes]):
    """What was decoded lately, up to a size."""

    size = 0

    def remember(self, data: bytes, text: bytes) -> None:
        self.size += len(data) + len(text)
        if self.size > _MAX_MEMORY:
            self.clear()
            self.size = len(data) + len(text)
        self[data] = text


_memory = _Memory()
_ahead: dict[bytes, bytes] = {}
"""Long strings that were decoded before they are asked for."""


def decode(data: bytes) -> bytes:
    """The string of this code."""
    known = _memory.get(data)
    if known is not None:
        return known
    if _ahead and (done := _ahead.get(data)) is not None:
        return done
    at, pieces = _walk(0, data)
    if at not in _ends:
        raise InvalidHuffman("a string must end with ones")
    text = b"".join(pieces)
    if len(data) <= _MEMORABLE:
        _memory.remember(data, text)
    return text


def decode_ahead(strings: Iterable[bytes], limit: int) -> Iterator[None]:
    """Decode long strings, a piece between two yields, up to so many bytes of text. Raises TooLong.

    Whoever goes through it to the end has `decode` find what is done, or what is wrong, and then calls `forget_ahead`.
    """
    done: dict[bytes, bytes] = {}
    for data in dict.fromkeys(strings):
        at, text = 0, bytearray()
        for start in range(0, len(data), _PIECE):
            try:
                at, pieces = _walk(at, data[start : start + _PIECE])
            except InvalidHuffman:
                break
            text += b"".join(pieces)
            if len(text) > limit:
                raise TooLong
            yield
        else:
            limit -= len(text)
            if at in _ends:
                done[data] = bytes(text)
                continue
        break  # nothing behind it will be asked for
    _ahead.update(done)


def forget_ahead() -> None:
    """What was decoded ahead has been asked for."""
    _ahead.clear()


def _walk(at: int, data: bytes) -> tuple[int, list[bytes]]:
    """From a place in the tree on: where some bytes lead to, and which letters are on the way."""
    pieces, steps = [], _steps
    for byte in data:
        key = at << 8 | byte
        step = steps.get(key)
        if step is None:
            step = steps[key] = _step(at, byte)
        at, piece = step
        pieces.append(piece)
    return at, pieces


def _step(at: int, byte: int) -> tuple[int, bytes]:
    letters = bytearray()
    for bit in range(7, -1, -1):
        at = _nodes[at][byte >> bit & 1]
        if at < 0:
            if ~at == _END:
                raise InvalidHuffman("the end within a string")
            letters.append(~at)
            at = 0
    return at, bytes(letters)
