"""Heads of answers: nothing that two readers could understand differently gets through."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.client.head import HeadReader, MalformedReply, parse_head


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


_KINDS = [
    b"Content-Type: application/json",
    b"Content-Length: 5",
    b"Connection: close",
    b"Date: Tue, 17 Nov 2026 22:00:00 GMT",
    b"audit-id: 6b1f",
    b"Audit-Id: 6b1f",
    b"Cache-Control: no-cache, private",
]


@given(st.lists(st.sampled_from(_KINDS), unique_by=lambda line: line.lower()))
def test_answers_that_differ_in_id_and_date_are_read_alike(lines: list[bytes]) -> None:
    head = parse_head(b"\r\n".join([b"HTTP/1.1 200 OK", *lines]))
    read = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    assert sorted(b": ".join(pair) for pair in head.headers) == sorted(lines)
    assert {name: head.get(name) for name in read} == read
    assert head.length == (5 if b"content-length" in read else None)
    assert (head.close, head.repeats) == (b"connection" in read, False)


@pytest.mark.parametrize("line", [b"Date: x\nA: b", b"audit-id: x\rA: b", b"Audit-Id: x\0"])
def test_an_id_or_date_that_breaks_out_of_its_line_is_refused(line: bytes) -> None:
    for lines in ([line], [line, b"X: y"]):
        with pytest.raises(MalformedReply):
            parse_head(b"\r\n".join([b"HTTP/1.1 200 OK", *lines]))


def test_an_answer_keeps_its_own_id() -> None:
    heads = [parse_head(b"HTTP/1.1 200 OK\r\nAudit-Id: %d\r\nX-A: b" % number) for number in range(3)]
    assert [head.get(b"audit-id") for head in heads] == [b"0", b"1", b"2"]
    assert all(len(head.headers) == 2 for head in heads)


_DATES = [b"Date: Tue, 17 Nov 2026 22:00:0%d GMT" % second for second in range(2)]
_IDS = [b"audit-id: 6b1f", b"audit-id: 77", b"Audit-Id: 6b1f", b"Audit-Id: 6b1f\r\nAudit-Id: 8"]
_LENGTHS = [b"Content-Length: 5", b"Content-Length: 6", b"Location: /x", b"Connection: close"]


@given(
    st.lists(st.permutations([_IDS, _DATES, _LENGTHS]).flatmap(lambda kinds: st.tuples(*map(st.sampled_from, kinds))))
)
def test_a_connection_that_remembers_its_last_head_reads_each_as_if_it_were_the_first(
    heads: list[tuple[bytes]],
) -> None:
    reader = HeadReader()
    for lines in heads:
        data = b"\r\n".join([b"HTTP/1.1 200 OK", *lines])
        read, expected = reader.read(data), parse_head(data)
        assert (read.status, read.lines) == (expected.status, expected.lines)
        assert (read.length, read.close, read.repeats) == (expected.length, expected.close, expected.repeats)
        names = (b"date", b"audit-id", b"location", b"content-length", b"x")
        assert [(name in read, read.get(name)) for name in names] == [
            (name in expected, expected.get(name)) for name in names
        ]


@pytest.mark.parametrize("value", [b"1\r2", b"1\n2", b"1\0"])
def test_an_id_that_breaks_out_of_its_line_is_refused_after_others_too(value: bytes) -> None:
    reader = HeadReader()
    head = b"HTTP/1.1 200 OK\r\naudit-id: %b\r\nContent-Length: 5"
    assert [reader.read(head % each).get(b"audit-id") for each in (b"1", b"2")] == [b"1", b"2"]
    with pytest.raises(MalformedReply):
        reader.read(head % value)
