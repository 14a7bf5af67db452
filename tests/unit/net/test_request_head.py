from urllib.parse import unquote_to_bytes

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.request_head import Lines, Refusal, parse_header_block, parse_request_line


@pytest.mark.parametrize(
    ("target", "path", "raw_path", "query"),
    [
        (b"/", "/", "/", ""),
        (b"/api/v1/pods?watch=1&a=%2F", "/api/v1/pods", "/api/v1/pods", "watch=1&a=%2F"),
        (b"/a%20b%2Fc", "/a b/c", "/a%20b%2Fc", ""),
        (b"/%C3%A4", "/ä", "/%C3%A4", ""),
        (b"/%ff/\xff", "/\ufffd/\ufffd", "/%ff/\xff", ""),
        (b"//a/../b", "//a/../b", "//a/../b", ""),
        (b"/a+b#c??", "/a+b#c", "/a+b#c", "?"),
        (b"http://host:1/p?q", "/p", "/p", "q"),
        (b"*", "*", "*", ""),
    ],
)
def test_targets(target: bytes, path: str, raw_path: str, query: str) -> None:
    line = parse_request_line(b"GET " + target + b" HTTP/1.1")
    assert (line.path, line.raw_path, line.query, line.target) == (path, raw_path, query, target)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"", "400 Bad Request"),
        (b"GET /", "400 Bad Request"),
        (b"GET  / HTTP/1.1", "400 Bad Request"),
        (b"GET / HTTP/1.1 ", "400 Bad Request"),
        (b" GET / HTTP/1.1", "400 Bad Request"),
        (b"GE(T / HTTP/1.1", "400 Bad Request"),
        (b"GET /\x00 HTTP/1.1", "400 Bad Request"),
        (b"GET /\t HTTP/1.1", "400 Bad Request"),
        (b"GET /\r HTTP/1.1", "400 Bad Request"),
        (b"GET /%zz HTTP/1.1", "400 Bad Request"),
        (b"GET /%4 HTTP/1.1", "400 Bad Request"),
        (b"GET pods HTTP/1.1", "400 Bad Request"),
        (b"GET / http/1.1", "400 Bad Request"),
        (b"GET / HTTP/1.10", "400 Bad Request"),
        (b"GET / HTTP/2.0", "505 HTTP Version Not Supported: unsupported protocol version"),
    ],
)
def test_refused_request_lines(line: bytes, status: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_request_line(line)
    assert caught.value.status_line == status


HOST = b"Host: x"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([HOST, b" folded"], "400 Bad Request"),
        ([HOST, b"\tfolded: x"], "400 Bad Request"),
        ([b" Host: x"], "400 Bad Request"),
        ([HOST, b"no colon"], "400 Bad Request"),
        ([HOST, b": empty"], "400 Bad Request"),
        ([HOST, b"A: b\rC: d"], "400 Bad Request"),
        ([HOST, b"A: b\nC: d"], "400 Bad Request"),
        ([HOST, b"A: \x00"], "400 Bad Request"),
        ([HOST, b"A: \x7f"], "400 Bad Request"),
        ([HOST, b"A\x80: b"], "400 Bad Request"),
        ([HOST, b"A : b"], "400 Bad Request: invalid header name"),
        ([HOST, b"Transfer-Encoding : chunked"], "400 Bad Request: invalid header name"),
        ([b"Host : x"], "400 Bad Request: missing required Host header"),
        ([b"Host: a b"], "400 Bad Request: malformed Host header"),
        ([b"Host: a/b"], "400 Bad Request: malformed Host header"),
        ([HOST, b"host: y"], "400 Bad Request"),
        ([HOST, b"Content-Length: 1", b"Content-Length: 2"], "400 Bad Request"),
        ([HOST, b"Content-Length: +1"], "400 Bad Request"),
        ([HOST, b"Content-Length: -1"], "400 Bad Request"),
        ([HOST, b"Content-Length: 1_0"], "400 Bad Request"),
        ([HOST, b"Content-Length: 1, 1"], "400 Bad Request"),
        ([HOST, b"Content-Length:"], "400 Bad Request"),
        ([HOST, b"Content-Length: 9223372036854775808"], "400 Bad Request"),
        ([b"a: b"] * 2001, "431 Request Header Fields Too Large"),
    ],
)
def test_refused_header_blocks(lines: list[bytes], status: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_header_block(b"\r\n".join(lines))
    assert caught.value.status_line == status


def test_values_are_trimmed_and_repeats_are_kept_in_order() -> None:
    headers = parse_header_block(b"Host: x\r\nAccept:  a \t\r\nACCEPT:b\r\naccept:\r\nX: \xc3\xa4")
    assert headers.values == {b"host": b"x", b"accept": b"a", b"x": b"\xc3\xa4"}
    assert headers.repeated == {b"accept": [b"a", b"b", b""]}


@given(
    st.lists(st.lists(st.sampled_from([HOST, b"A: 1", b"A: 2", b"a:3 ", b"B : 4", b" C: 5", b"", b"D"])), max_size=5)
)
def test_known_lines_mean_what_they_meant_before(blocks: list[list[bytes]]) -> None:
    def read(block: bytes, *known: Lines) -> object:
        try:
            headers = parse_header_block(block, *known)
        except Refusal as refusal:
            return refusal.status_line, refusal.text
        return list(headers.values.items()), headers.repeated, headers.plain

    known: Lines = {}
    for lines in blocks:
        block = b"\r\n".join(lines)
        assert read(block, known) == read(block)
        assert len(known) <= max(map(len, blocks))


@pytest.mark.parametrize(
    ("extra", "length", "chunked", "unsupported"),
    [
        (b"Content-Length: 5", 5, False, False),
        (b"Content-Length: 5\r\ncontent-length: 5", 5, False, False),
        (b"Transfer-Encoding: Chunked", None, True, False),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", 3, True, False),
        (b"Transfer-Encoding: gzip", None, False, True),
        (b"Transfer-Encoding: gzip, chunked", None, False, True),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", None, False, True),
        (b"Transfer-Encoding: \x0bchunked", None, False, None),
    ],
)
def test_framing(extra: bytes, length: int | None, chunked: bool, unsupported: bool | None) -> None:
    block = b"Host: x\r\n" + extra
    if unsupported is None:
        with pytest.raises(Refusal):
            parse_header_block(block)
        return
    headers = parse_header_block(block)
    assert (headers.content_length, headers.chunked, headers.transfer_encoding_error) == (length, chunked, unsupported)


class Collected:
    """What llhttp makes of the same bytes."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        self.complete = True


token = st.sampled_from([b"A", b"b-c", b"Accept", b"a b", b"", b"x\x00"])
value = st.lists(st.sampled_from([b"a", b" ", b"\t", b":", b"\r", b"\n", b"\xff", b"\x01"]), max_size=5).map(b"".join)
separator = st.sampled_from([b":", b": ", b" : ", b"", b":\t"])
end = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n "])


@given(st.lists(st.tuples(token, separator, value, end), max_size=4))
def test_what_is_accepted_means_the_same_to_another_parser(lines: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
    raw = b"Host: x\r\n" + b"".join(b"".join(line) for line in lines)
    block = raw.removesuffix(b"\r\n")
    if b"\r\n\r\n" in raw or block == raw:
        return
    try:
        ours = parse_header_block(block)
    except Refusal:
        return
    theirs = Collected()
    httptools.HttpRequestParser(theirs).feed_data(b"GET / HTTP/1.1\r\n" + raw + b"\r\n")
    assert theirs.complete
    for name in ours.values:
        mine = ours.repeated.get(name, [ours.values[name]])
        assert mine == [v for n, v in theirs.headers if n == name]
    assert {n for n, _ in theirs.headers} == set(ours.values)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([b"=", b"_", b"==", b"=3D", b"%3D", b"%25", b"/", b"."]),
            st.integers(0, 255).map(lambda n: b"%%%02x" % n),
            st.integers(0, 255).map(lambda n: b"%%%02X" % n),
            st.binary(max_size=4).map(lambda b: bytes(c for c in b if c > 0x20 and c not in b"%?\x7f")),
        )
    )
)
def test_escapes_in_paths_mean_what_they_mean_elsewhere(parts: list[bytes]) -> None:
    raw = b"/" + b"".join(parts)
    line = parse_request_line(b"GET " + raw + b" HTTP/1.1")
    assert line.path == unquote_to_bytes(raw).decode("utf-8", "replace")
