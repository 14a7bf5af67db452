"""Finding request heads in a stream of bytes.

Sans-IO and at home on one connection: `feed` takes bytes in whatever pieces they come, `next_head` gives the next
complete head or None, `take` gives up everything behind it (for a body or an upgrade).  Each byte is searched once,
however small the pieces; a head that can only become malformed is refused before it is complete.
"""

from pilothouse.net.request_head import (
    HeaderBlock,
    Lines,
    Refusal,
    RequestLine,
    parse_header_block,
    parse_request_line,
)

_FURTHER_LINES = 4
_REMEMBERED = 8 * 1024
"""Longer blocks are not kept for requests to come: a connection that says nothing more would keep them all its life."""
_CHANCES = 8
"""How often in a row it is worth looking in vain how blocks of a connection begin."""


class HeadReader:
    """The unread input of a connection."""

    __slots__ = (
        "_at",
        "_beginning",
        "_begun",
        "_block",
        "_chances",
        "_headers",
        "_last_post",
        "_limit",
        "_line",
        "_lines",
        "_scanned",
        "data",
    )

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.data: bytes | bytearray = b""  # empty when all is read
        self._at = 0  # where the unread input begins
        self._scanned = 0  # how far the end of the head has been searched for
        self._line: RequestLine | None = None  # of a head whose rest is awaited
        self._last_post = False
        self._block: bytes | None = None  # the latest header block and what it means
        self._headers: HeaderBlock | None = None
        self._lines: Lines | None = None
        self._begun: HeaderBlock | None = None  # how blocks begin that differ at their ends, and what that means
        self._beginning = b""
        self._chances = _CHANCES

    @property
    def pending(self) -> int:
        """How many bytes are unread."""
        return len(self.data) - self._at

    def feed(self, data: bytes) -> None:
        """Add input."""
        if self._at >= len(self.data):
            self.data = data
            self._at = self._scanned = 0
            return
        if not isinstance(self.data, bytearray):
            self._scanned = max(0, self._scanned - self._at)
            self.data = bytearray(self.data[self._at :])
            self._at = 0
        self.data += data

    def take(self) -> bytes:
        """Give up all unread input."""
        data = bytes(self.data[self._at :])
        self.data = b""
        self._at = self._scanned = 0
        return data

    def next_head(self) -> tuple[RequestLine, HeaderBlock] | None:
        """The next complete head; None while there is none; Refusal when there cannot be one."""
        data, at = self.data, self._at
        if self._last_post:
            at = self._skip_stray_line_end(data, at)
            if at == len(data):
                return None
        end = data.find(b"\r\n\r\n", at if at > self._scanned else self._scanned)
        if end < 0 or end - at > self._limit:
            self._check_partial(data, at)
            return None
        line_end = data.find(b"\r\n", at, end)
        if line_end < 0:
            line_end, block = end, b""
        else:
            block = bytes(data[line_end + 2 : end])
        line = self._line or parse_request_line(bytes(data[at:line_end]))
        headers = self._headers
        if headers is None or block != self._block:
            if len(block) > _REMEMBERED:
                headers = parse_header_block(block)
            else:
                headers = self._headers = self._read_block(block)
                self._block = block
        if end + 4 == len(data):
            self.data = b""
            self._at = self._scanned = 0
        else:
            self._at = self._scanned = end + 4
        self._line = None
        self._last_post = line.method == "POST"
        return line, headers

    def _read_block(self, block: bytes) -> HeaderBlock:
        if self._begun is not None and block.startswith(self._beginning):
            lines = block[len(self._beginning) :].split(b"\r\n")
            headers = self._begun.joined_by(lines) if len(lines) <= _FURTHER_LINES else None
            if headers is not None:
                self._chances = _CHANCES
                return headers
        if self._block is None:
            return parse_header_block(block)  # one block for all requests needs no memory of its lines
        if self._lines is None:
            self._lines = {}
        headers = parse_header_block(block, self._lines)
        if self._chances:
            self._chances -= 1
            self._find_beginning(block.split(b"\r\n"), self._block.split(b"\r\n"))
        return headers

    def _find_beginning(self, lines: list[bytes], before: list[bytes]) -> None:
        """Note how two blocks begin, if they differ in a few lines at their ends: proxies send such blocks."""
        same = 0
        while same < len(lines) - 1 and same < len(before) and lines[same] == before[same]:
            same += 1
        if len(lines) - same <= _FURTHER_LINES:
            common = b"\r\n".join(lines[:same])
            begun = parse_header_block(common)
            if begun.plain:
                self._begun, self._beginning = begun, common + b"\r\n"

    def _skip_stray_line_end(self, data: bytes | bytearray, at: int) -> int:
        # Old clients send an extra line end after the body of a POST.
        while at < len(data) and data[at] in b"\r\n":
            at += 1
        self._at = at
        if at == len(data):
            self.take()
        return at

    def _check_partial(self, data: bytes | bytearray, at: int) -> None:
        if len(data) - at > self._limit:
            raise Refusal("431 Request Header Fields Too Large")
        start = max(at, self._scanned)
        if data.count(b"\n", start) > data.count(b"\r\n", max(0, start - 1)):  # a bare one
            raise Refusal
        if self._line is None:
            line_end = data.find(b"\r\n", at)
            if line_end >= 0:
                self._line = parse_request_line(bytes(data[at:line_end]))
        self._scanned = max(at, len(data) - 3)
