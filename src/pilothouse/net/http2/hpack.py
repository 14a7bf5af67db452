"""Decoding header blocks (HPACK, RFC 7541), within bounds.

One decoder a connection, because every block may change the table of the next. `version` changes with the table: a
block decoded once means the same as long as it does not.

What a block may cost is bounded before the work is done: integers by their length, the table by the size we announced,
the list by the limit given to `decode`, whichever way it is made.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.net.http2 import huffman
from pilothouse.net.request_head import MAX_HEADERS

TABLE_SIZE: Final = 4096  # what is assumed of a server that says nothing
_ENTRY: Final = 32  # what each entry counts beyond its bytes

_KNOWN_BLOCK: Final = 2048
_WORTH_KNOWING: Final = 3  # fields
_PLAIN: Final = 0x7F  # lengths below are one byte, of a string that is not compressed

Field = tuple[bytes, bytes]

_NAMED: Final = (
    b"accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow "
    b"authorization cache-control content-disposition content-encoding content-language content-length "
    b"content-location content-range content-type cookie date etag expect expires from host if-match "
    b"if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards "
    b"proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie "
    b"strict-transport-security transfer-encoding user-agent vary via www-authenticate"
).split()

STATIC: Final[tuple[Field, ...]] = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    *((b":status", status) for status in (b"200", b"204", b"206", b"304", b"400", b"404", b"500")),
    *((name, b"gzip, deflate" if name == b"accept-encoding" else b"") for name in _NAMED),
)
_STATIC_COUNT: Final = len(STATIC)


class InvalidBlock(ValueError):
    """A header block that is none; what the table is from here on, nobody knows."""


class HeaderListTooLarge(ValueError):
    """More than we are willing to take; the rest of the block was not decoded."""


class _Beginning(NamedTuple):
    """How a block begins, and what that means as long as the table is of this version."""

    version: int
    data: bytes
    fields: list[Field]
    size: int


_NO_BEGINNING: Final = _Beginning(-1, b"", [], 0)


class HeaderDecoder:
    """The table of one connection."""

    __slots__ = ("_beginning", "_entries", "_last", "_limit", "_size", "version")

    def __init__(self) -> None:
        self._entries: list[Field] = []  # oldest first
        self._size = 0
        self._limit = TABLE_SIZE
        self.version = 0
        self._last = b""
        self._beginning = _NO_BEGINNING

    def decode(self, block: bytes, limit: int) -> list[Field]:
        """The fields of a block; `limit` bounds the sum of their sizes."""
        known, version = self._beginning, self.version
        if known.version == version and block.startswith(known.data) and known.size <= limit:
            fields, at, size = known.fields.copy(), len(known.data), known.size
        else:
            known = _NO_BEGINNING
            fields, at, size = [], self._read_size_updates(block), 0
        end, ends = len(block), []
        try:
            while at < end:
                first = block[at]
                if first & 0x80:
                    if first == 0xFF:
                        index, at = _read_integer(block, at, 7)
                    else:
                        index, at = first & 0x7F, at + 1
                    field = self._field(index)
                elif first & 0x40:
                    field, at = self._read_literal(block, at, 6)
                    self._insert(field)
                elif first & 0x20:
                    raise InvalidBlock("a size update after a field")
                else:
                    field, at = self._read_literal(block, at, 4)
                size += len(field[0]) + len(field[1]) + _ENTRY
                if size > limit or len(fields) >= MAX_HEADERS:
                    raise HeaderListTooLarge
                fields.append(field)
                ends.append((at, size))
        except (IndexError, huffman.InvalidHuffman) as error:
            raise InvalidBlock("truncated or wrongly coded") from error
        if known is _NO_BEGINNING and version == self.version and end <= _KNOWN_BLOCK:
            self._learn(block, fields, ends)
        return fields

    def _learn(self, block: bytes, fields: list[Field], ends: list[tuple[int, int]]) -> None:
        """Remember what a block has in common with the one before: most differ in an id or a length at their end.

        Only of blocks that leave the table as it is: what is skipped the next time must have nothing else to do.
        """
        last, self._last = self._last, block
        count = len(ends)
        while count and not last.startswith(block[: ends[count - 1][0]]):
            count -= 1
        if count >= _WORTH_KNOWING:
            at, size = ends[count - 1]
            self._beginning = _Beginning(self.version, block[:at], fields[:count], size)

    def _read_size_updates(self, block: bytes) -> int:
        at, seen = 0, 0
        while at < len(block) and block[at] & 0xE0 == 0x20:
            try:
                self._limit, at = _read_integer(block, at, 5)
            except IndexError as error:
                raise InvalidBlock("truncated size update") from error
            seen += 1
            if self._limit > TABLE_SIZE or seen > 2:
                raise InvalidBlock("a table larger than allowed, or resized again and again")
            self.version += 1
            self._evict()
        return at

    def _field(self, index: int) -> Field:
        if not index:
            raise InvalidBlock("index 0")
        if index <= _STATIC_COUNT:
            return STATIC[index - 1]
        index -= _STATIC_COUNT
        if index > len(self._entries):
            raise InvalidBlock("an index beyond the table")
        return self._entries[-index]

    def _read_literal(self, block: bytes, at: int, bits: int) -> tuple[Field, int]:
        """Strings are mostly short and as they are, so these are read here. Raises IndexError where the block ends."""
        index = block[at] & ((1 << bits) - 1)
        if index + 1 >> bits:
            index, at = _read_integer(block, at, bits)
        else:
            at += 1
        if index:
            name = self._field(index)[0]
        elif (size := block[at]) < _PLAIN:
            at += 1
            name = block[at : at + size]
            at += size
        else:
            name, at = _read_string(block, at)
        if (size := block[at]) >= _PLAIN:
            value, at = _read_string(block, at)
            return (name, value), at
        at += 1
        if at + size > len(block):
            raise InvalidBlock("a string beyond the block")
        return (name, block[at : at + size]), at + size

    def _insert(self, field: Field) -> None:
        self.version += 1
        self._entries.append(field)
        self._size += len(field[0]) + len(field[1]) + _ENTRY
        if self._size > self._limit:
            self._evict()

    def _evict(self) -> None:
        entries, gone = self._entries, 0
        while self._size > self._limit:
            name, value = entries[gone]
            self._size -= len(name) + len(value) + _ENTRY
            gone += 1
        if gone:
            del entries[:gone]
            self.version += 1


def find_long_strings(block: bytes) -> list[bytes]:
    """The compressed strings of a block that take long to decode; what is wrong with it will be found later."""
    found: list[bytes] = []
    at, end, left = 0, len(block), MAX_HEADERS
    try:
        while at < end and left:
            left -= 1
            first = block[at]
            bits = 7 if first & 0x80 else 6 if first & 0x40 else 5 if first & 0x20 else 4
            index, at = _read_integer(block, at, bits)
            for _ in range(0 if bits in (5, 7) else 1 if index else 2):
                is_coded = block[at] & 0x80
                size, at = _read_integer(block, at, 7)
                if is_coded and huffman.LONG <= size <= end - at:
                    found.append(block[at : at + size])
                at += size
    except (IndexError, InvalidBlock):
        pass
    return found


def _read_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in (0, 7, 14, 21):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise InvalidBlock("an integer without end")


def _read_string(block: bytes, at: int) -> tuple[bytes, int]:
    coded = block[at] & 0x80
    length, at = _read_integer(block, at, 7)
    end = at + length
    if end > len(block):
        raise InvalidBlock("a string beyond the block")
    data = block[at:end]
    return (huffman.decode(data) if coded else data), end


def encode_integer(value: int, bits: int, first: int = 0) -> bytes:
    """An integer behind the bits of `first`."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    octets = bytearray((first | most,))
    value -= most
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def encode_string(text: bytes) -> bytes:
    """A string as it is: what is sent once is not worth compressing."""
    return encode_integer(len(text), 7) + text
