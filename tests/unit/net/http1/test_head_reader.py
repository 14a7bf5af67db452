"""What a connection remembers of earlier heads must never change what a later one means."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http1.head_reader import HeadReader
from pilothouse.net.request_head import HeaderBlock, Refusal

LINES = [
    b"Host: a",
    b"Host: b",
    b"X-Remote-User: ann",
    b"X-Remote-User: bob",
    b"x-remote-user: eve",
    b"X-Remote-Group: devs",
    b"Audit-Id: 1",
    b"Audit-Id: 2",
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Transfer-Encoding: chunked",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Expect: 100-continue",
    b"Bad Name: x",
    b"no colon",
    b"X: a\nb",
]
BEGINNING = [b"Host: a", b"X-Remote-User: ann", b"X-Remote-Group: devs"]
BLOCK = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=6),
    st.lists(st.sampled_from(LINES), max_size=6).map(lambda lines: BEGINNING + lines),
)


def read(reader: HeadReader, lines: list[bytes]) -> HeaderBlock | str:
    reader.feed(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"", b""]))
    try:
        head = reader.next_head()
    except Refusal as refusal:
        reader.take()
        return refusal.status_line
    assert head is not None
    return head[1]


def meaning(found: HeaderBlock | str) -> Any:
    if isinstance(found, str):
        return found
    framing = (found.content_length, found.chunked, found.transfer_encoding_error, found.expect, found.plain)
    connection = (found.close, found.keep_alive, found.host, str(found.host_error))
    return found.values, found.repeated, framing, connection


@given(st.lists(BLOCK, max_size=12))
def test_a_block_means_the_same_whatever_came_before_it(blocks: list[list[bytes]]) -> None:
    reader = HeadReader(1 << 16)
    for lines in blocks:
        assert meaning(read(reader, lines)) == meaning(read(HeadReader(1 << 16), lines))


@given(st.lists(BLOCK, max_size=12))
def test_findings_are_shared_by_blocks_with_the_same_names_alone(blocks: list[list[bytes]]) -> None:
    reader = HeadReader(1 << 16)
    for lines in blocks:
        found = read(reader, lines)
        if isinstance(found, HeaderBlock):
            names = (list(found.values), found.repeated)
            assert found.findings.setdefault("names", names) == names


def test_blocks_that_differ_at_their_ends_share_findings() -> None:
    reader = HeadReader(1 << 16)
    found = [read(reader, [*BEGINNING, b"Audit-Id: %d" % number]) for number in range(4)]
    blocks = [each for each in found if isinstance(each, HeaderBlock)]
    assert [each.values[b"audit-id"] for each in blocks] == [b"0", b"1", b"2", b"3"]
    assert blocks[2].findings is blocks[3].findings


@given(st.lists(st.sampled_from([b"\r\n", b"\n", b"\r", b"X: a", b"GET / HTTP/1.1"]), max_size=8), st.integers(1, 9))
def test_a_bare_line_end_is_found_however_a_head_comes_in_pieces(parts: list[bytes], size: int) -> None:
    head = b"GET /a HTTP/1.1\r\n" + b"".join(parts)
    reader = HeadReader(1 << 20)
    refused = found = False
    for at in range(0, len(head), size):
        reader.feed(head[at : at + size])
        try:
            found = reader.next_head() is not None
        except Refusal:
            refused = True
        if refused or found:
            break
    is_bare = b"\n" in head.replace(b"\r\n", b"")
    assert found or refused or not is_bare
    assert is_bare or not refused or b"\r\n\r\n" in head


def test_the_line_of_a_head_in_pieces_is_that_of_its_own_request() -> None:
    reader = HeadReader(1 << 20)
    reader.feed(b"GET /a HTTP/1.1\r\nHost: ")
    assert reader.next_head() is None
    reader.feed(b"x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
    paths = [head[0].path for head in (reader.next_head(), reader.next_head()) if head is not None]
    assert paths == ["/a", "/b"]


def test_long_heads_are_forgotten() -> None:
    """A connection may have nothing more to say for a long time."""
    reader = HeadReader(1 << 20)
    for number in range(3):
        reader.feed(b"GET / HTTP/1.1\r\nHost: a\r\nX-Number: %d\r\nX-Long: %b\r\n\r\n" % (number, b"a" * 500_000))
        assert reader.next_head() is not None
        assert len(reader._block or b"") + len(reader.data) + len(reader._beginning) == 0
