"""SPDY frames: what is written is read again in whatever pieces it comes, and nonsense is refused within bounds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.spdy import frames
from pilothouse.net.spdy.dictionary import DICTIONARY
from pilothouse.net.spdy.frames import Control, Data, FrameReader, FrameWriter, SpdyError

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
HEADERS = st.dictionaries(
    NAMES,
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=2
    ),
    max_size=4,
)
STREAMS = st.integers(1, (1 << 31) - 1)


def read(reader: FrameReader, data: bytes) -> list[Data | Control]:
    """All that is complete with this."""
    reader.feed(data)
    return list(iter(reader.next_frame, None))


def test_the_dictionary() -> None:
    assert len(DICTIONARY) == 1423
    assert DICTIONARY.startswith(b"\0\0\0\x07options") and DICTIONARY.endswith(b"enq=0.")


@given(st.lists(st.tuples(STREAMS, HEADERS, st.binary(max_size=100), st.booleans()), max_size=5), st.integers(1, 50))
def test_round_trip(opened: list[tuple[int, dict[str, list[str]], bytes, bool]], step: int) -> None:
    writer, reader = FrameWriter(), FrameReader()
    sent = b"".join(
        writer.syn_stream(stream, headers, fin=fin)
        + writer.data(stream, data, fin=fin)
        + writer.syn_reply(stream, headers)
        + writer.rst_stream(stream, frames.CANCEL)
        for stream, headers, data, fin in opened
    )
    got: list[Data | Control] = []
    for at in range(0, len(sent), step):
        got += read(reader, sent[at : at + step])
    assert [each.stream for each in got if isinstance(each, Control)] == [s for s, *_ in opened for _ in range(3)]
    assert b"".join(each.payload for each in got if isinstance(each, Data)) == b"".join(d for _, _, d, _ in opened)
    syns = [each.headers for each in got if isinstance(each, Control) and each.type == frames.SYN_STREAM]
    assert syns == [headers for _, headers, _, _ in opened]


@given(st.binary(max_size=300))
def test_nonsense(data: bytes) -> None:
    with suppress(SpdyError):
        read(FrameReader(), data)


@given(st.binary(max_size=100))
def test_nonsense_in_headers(data: bytes) -> None:
    with suppress(SpdyError):
        frames.parse_headers(data)


@pytest.mark.parametrize(
    "frame",
    [
        b"\x80\x02\0\x01\0\0\0\0",  # version 2
        b"\x80\x03\0\x63\0\0\0\0",  # no such type
        b"\x80\x03\0\x01\0\xff\xff\xff",  # longer than any control frame
        b"\x80\x03\0\x06\0\0\0\x05\0\0\0\0\0",  # a ping has four bytes
        b"\0\0\0\0\0\0\0\0",  # data of stream zero
        b"\x80\x03\0\x04\0\0\0\x04\xff\xff\xff\xff",  # settings that are not there
    ],
)
def test_refused(frame: bytes) -> None:
    with pytest.raises(SpdyError):
        read(FrameReader(), frame)


def test_headers_that_inflate_beyond_measure() -> None:
    bomb = FrameWriter().syn_stream(1, {"a": ["x" * (frames.MAX_HEADER_BLOCK + 1)]})
    with pytest.raises(SpdyError, match="too large"):
        read(FrameReader(), bomb)


def test_more_headers_than_any_stream_has() -> None:
    """Half a kilobyte of wire would be a list of thousands of strings for each stream."""
    for headers in ({"a": [""] * 101}, {f"a{number}": ["", ""] for number in range(51)}):
        with pytest.raises(SpdyError, match="too many headers"):
            read(FrameReader(), FrameWriter().syn_stream(1, headers))


def test_long_data_comes_as_it_arrives() -> None:
    reader = FrameReader()
    assert read(reader, b"\0\0\0\x01\x01\xff\xff\xffabc") == [Data(1, b"abc", False)]
    assert read(reader, b"de") == [Data(1, b"de", False)]
    assert not reader.pending
