"""Parsing the head of a request: request line and header block.

Accepts what Go's net/http accepts and answers what it answers to the rest, with one deliberate exception: everything
that two HTTP parsers could read differently is refused (bare CR or LF, folded lines, empty header names).
Pure functions of bytes. A client repeats the same header block on every request of a connection, so a block is
parsed into a `HeaderBlock` that the connection may keep and reuse; nothing here depends on the request line.
"""

import re
from binascii import a2b_qp
from collections.abc import Callable
from typing import Any

from pilothouse.net.header_lists import MOST_TOKENS, list_tokens

MAX_HEADERS = 2000
"""Proxies send a header for each group of a user, and directories give users a thousand."""

_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_VERSION = re.compile(rb"HTTP/([0-9])\.([0-9])").fullmatch
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z ]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)").fullmatch
_HOST = re.compile(rb"[!$%&'()*+,\-.:;=\[\]_~0-9A-Za-z]*").fullmatch
_CONTROLS = bytes((*range(0x21), 0x7F))
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://([^/?]*)(.*)", re.DOTALL).fullmatch
_DIGITS = re.compile(rb"[0-9]{1,19}").fullmatch
_METHODS = {m: m.decode() for m in (b"GET", b"PUT", b"POST", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"CONNECT")}


_DECISIVE = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"})
Lines = dict[bytes, tuple[bytes, bytes]]
"""Lines of a header block, and the name and value that each is read as."""


class Refusal(Exception):
    """A request that is answered without reaching a handler; the connection closes after it."""

    def __init__(self, status_line: str = "400 Bad Request", text: str | None = None) -> None:
        super().__init__(status_line)
        self.status_line = status_line
        self.text = status_line if text is None else text


class RequestLine:
    """Method, target and version, with the target taken apart.

    Clients ask the same again and again, and lines are kept: what upper layers read from one may be left in `reading`.
    """

    __slots__ = ("host", "method", "minor", "path", "query", "raw_path", "reading", "target")

    def __init__(
        self, method: str, target: bytes, raw_path: str, path: str, query: str, minor: int, host: bytes | None
    ) -> None:
        self.method = method
        self.target = target
        self.raw_path = raw_path
        self.path = path
        self.query = query
        self.minor = minor
        self.host = host
        self.reading: object = None


_known_lines: dict[bytes, RequestLine] = {}
_MAX_KNOWN_LINE = 512
_MAX_KNOWN_LINES = 1024


class HeaderBlock:
    """The headers and what they say about framing and about the connection.

    A connection keeps its block while it stays the same: what upper layers find in one may be left in `findings`.
    Blocks that differ in the values of their last headers share them: what is found in values is held against these.
    """

    __slots__ = (
        "_further",
        "chunked",
        "close",
        "content_length",
        "expect",
        "findings",
        "host",
        "host_error",
        "keep_alive",
        "plain",
        "repeated",
        "transfer_encoding_error",
        "values",
    )

    def __init__(self, values: dict[bytes, bytes], repeated: dict[bytes, list[bytes]]) -> None:
        self.values = values
        self.repeated = repeated
        self.findings: dict[object, Any] = {}
        self.content_length: int | None = None
        self.chunked = False
        self.transfer_encoding_error = False
        self.close = False
        self.keep_alive = False
        self.expect = b""
        self.host = values.get(b"host", b"")
        self.plain = False  # an HTTP/1.1 request with these headers has no body and nothing special
        self.host_error: Refusal | None = None
        self._further: tuple[list[bytes], dict[object, Any]] | None = None

    def joined_by(self, lines: list[bytes]) -> "HeaderBlock | None":
        """This plain block and further lines; None where those are not plain, or repeat a header. Raises Refusal."""
        values = self.values.copy()
        names: list[bytes] = []
        for line in lines:
            name, value = _read_line(line)
            if name in values or name in _DECISIVE or b" " in name:
                return None
            values[name] = value
            names.append(name)
        block = HeaderBlock(values, self.repeated)
        block.plain, block.close, block.keep_alive = True, self.close, self.keep_alive
        if self._further is not None and self._further[0] == names:
            block.findings = self._further[1]
        else:
            self._further = names, block.findings
        return block


def is_host(text: bytes) -> bool:
    """Whether this may stand in a Host header."""
    return _HOST(text) is not None


def parse_request_line(line: bytes) -> RequestLine:
    """Take `METHOD target HTTP/1.x` apart, or raise Refusal. Controllers ask the same again and again: cached."""
    known = _known_lines.get(line)
    if known is None:
        known = _parse_request_line(line)
        if len(line) <= _MAX_KNOWN_LINE:
            if len(_known_lines) >= _MAX_KNOWN_LINES:
                _known_lines.clear()
            _known_lines[line] = known
    return known


def _parse_request_line(line: bytes) -> RequestLine:
    words = line.split(b" ")
    if len(words) != 3:
        raise Refusal
    raw_method, target, version = words
    method = _METHODS.get(raw_method)
    if method is None:
        if not _METHOD(raw_method):
            raise Refusal
        method = raw_method.decode()
    if version == b"HTTP/1.1":
        minor = 1
    else:
        minor = _minor_version(version)
    return _split_target(method, target, minor)


def _minor_version(version: bytes) -> int:
    match = _VERSION(version)
    if match is None:
        raise Refusal
    if match[1] != b"1":
        raise Refusal("505 HTTP Version Not Supported: unsupported protocol version")
    return int(match[2])


def _split_target(method: str, target: bytes, minor: int) -> RequestLine:
    # A pattern takes ten times as long, which in a target of 1 MB others wait for.
    if not target or len(target.translate(None, _CONTROLS)) < len(target):
        raise Refusal
    host = None
    rest = target
    if not target.startswith(b"/"):
        if method == "CONNECT":
            return RequestLine(method, target, "", "", "", minor, target)
        absolute = _ABSOLUTE(target)
        if absolute:
            host, rest = absolute[1], absolute[2]
        elif target != b"*":
            raise Refusal
    raw_path, _, query = rest.partition(b"?")
    if raw_path.isascii() and b"%" not in raw_path:
        path = text = raw_path.decode("ascii")
    else:
        path, text = _decode_path(raw_path), raw_path.decode("latin-1")
    return RequestLine(method, target, text, path, query.decode("latin-1"), minor, host)


def _decode_path(raw: bytes) -> str:
    if _BAD_ESCAPE(raw):
        raise Refusal
    # The library's own way takes 100 ms for 1 MB, a list of pieces among others; this is one pass over the bytes.
    return a2b_qp(raw.replace(b"=", b"=3D").replace(b"%", b"=")).decode("utf-8", "replace")


def parse_header_block(block: bytes, known: Lines | None = None) -> HeaderBlock:
    """Parse the lines between the request line and the empty line (without their final CRLF), or raise Refusal.

    ``known`` is what the lines of an earlier block were read as, and becomes that of this one: where a proxy sends
    requests of many, most lines are those of the request before.
    """
    values: dict[bytes, bytes] = {}
    repeated: dict[bytes, list[bytes]] = {}
    misnamed = False
    lines = block.split(b"\r\n") if block else []
    if len(lines) > MAX_HEADERS:
        raise Refusal("431 Request Header Fields Too Large")
    read = _read_line if known is None else _remember(known, lines)
    for line in lines:
        name, value = read(line)
        if b" " in name:
            misnamed = True
        elif name not in values:
            values[name] = value
        elif name in repeated:
            repeated[name].append(value)
        else:
            repeated[name] = [values[name], value]
    headers = HeaderBlock(values, repeated)
    _read_host(headers, misnamed)
    _read_framing(headers)
    _read_connection(headers)
    headers.plain = (
        headers.host_error is None
        and not headers.content_length
        and not headers.chunked
        and not headers.transfer_encoding_error
        and not headers.expect
    )
    return headers


def _read_line(line: bytes) -> tuple[bytes, bytes]:
    match = _HEADER(line)
    if match is None or line.startswith(b" "):
        raise Refusal
    return match[1].lower(), match[2].rstrip(b" \t")


def _remember(known: Lines, lines: list[bytes]) -> Callable[[bytes], tuple[bytes, bytes]]:
    """Read lines that are not known, and forget those that are not there any more."""
    fresh = {line: known.get(line) or _read_line(line) for line in lines}
    known.clear()
    known.update(fresh)
    return known.__getitem__


def _read_host(headers: HeaderBlock, misnamed: bool) -> None:
    if b"host" in headers.repeated:
        raise Refusal
    host = headers.values.get(b"host")
    if host is None:
        headers.host_error = Refusal("400 Bad Request: missing required Host header")
    elif not _HOST(host):
        raise Refusal("400 Bad Request: malformed Host header")
    if misnamed and headers.host_error is None:
        raise Refusal("400 Bad Request: invalid header name")
    if misnamed:
        # HTTP/1.0 may leave Host out, but not misname a header.
        raise headers.host_error or Refusal


def _read_framing(headers: HeaderBlock) -> None:
    lengths = headers.repeated.pop(b"content-length", None) or [headers.values.get(b"content-length", b"")]
    if b"content-length" in headers.values:
        if any(other != lengths[0] for other in lengths) or not _DIGITS(lengths[0]) or int(lengths[0]) >> 63:
            raise Refusal
        headers.content_length = int(lengths[0])
    if b"transfer-encoding" in headers.values:
        encodings = headers.repeated.get(b"transfer-encoding", [headers.values[b"transfer-encoding"]])
        headers.chunked = len(encodings) == 1 and encodings[0].lower() == b"chunked"
        headers.transfer_encoding_error = not headers.chunked


def _read_connection(headers: HeaderBlock) -> None:
    values = headers.values
    if b"connection" in values:
        listed = list_tokens(headers.repeated.get(b"connection", [values[b"connection"]]))
        tokens = [token.lower() for token in listed]
        headers.close = b"close" in tokens or len(tokens) >= MOST_TOKENS  # whatever else it says
        headers.keep_alive = b"keep-alive" in tokens
    headers.expect = values.get(b"expect", b"").lower()
