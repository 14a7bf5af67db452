"""Heads of answers: nothing that two readers could understand differently gets through."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.client.head import MalformedReply, parse_head


def test_a_head() -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\nConnection: close")
    assert (head.status, head.reason, head.length, head.close) == (200, b"OK", 5, True)
    assert head.headers[1] == (b"X-A", b"b")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/2 200 OK",
        b"garbage",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\n folded: x",
        b"HTTP/1.1 200 OK\r\nA: b\nC: d",
        b"HTTP/1.1 200 OK\r\nA : b",
    ],
)
def test_what_is_refused(head: bytes) -> None:
    with pytest.raises(MalformedReply):
        parse_head(head)


def test_both_framings_end_the_connection() -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked")
    assert head.chunked and head.length is None and head.close


@given(st.binary(max_size=200))
def test_anything(data: bytes) -> None:
    with suppress(MalformedReply):
        parse_head(b"HTTP/1.1 200 OK\r\n" + data)
