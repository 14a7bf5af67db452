import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frame_reader import FrameReader
from pilothouse.net.http2.frames import ConnectionFailure

FRAME = st.tuples(
    st.sampled_from([0, 1, 4, 7, 9, 77]), st.integers(0, 255), st.integers(0, 2**31 - 1), st.binary(max_size=50)
)


@given(st.lists(FRAME, max_size=8), st.lists(st.integers(1, 60), max_size=40), st.booleans())
def test_frames_are_found_in_whatever_pieces_they_come(
    sent: list[tuple[int, int, int, bytes]], cuts: list[int], together: bool
) -> None:
    wire = frames.PREFACE + b"".join(frames.header(len(p), kind, flags, n) + p for kind, flags, n, p in sent)
    reader, found = FrameReader(), []
    while wire:
        size = cuts.pop() if cuts else len(wire)
        reader.feed(wire[:size])
        wire = wire[size:]
        if together:
            while several := reader.next_frames():
                found += several
        else:
            while frame := reader.next_frame():
                found.append(frame)
    assert found == sent
    assert not reader.pending


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (b"GET / HTTP/1.1\r\n", frames.PROTOCOL_ERROR),
        (frames.PREFACE + frames.header(16385, frames.DATA, 0, 1), frames.FRAME_SIZE_ERROR),
        (frames.PREFACE + frames.header(7, frames.PING, 0, 0), frames.FRAME_SIZE_ERROR),
        (frames.PREFACE + frames.header(5, frames.WINDOW_UPDATE, 0, 0), frames.FRAME_SIZE_ERROR),
    ],
)
def test_what_cannot_become_a_frame_is_refused_at_once(wire: bytes, code: int) -> None:
    for take in (FrameReader.next_frame, FrameReader.next_frames):
        reader = FrameReader()
        reader.feed(wire)
        with pytest.raises(ConnectionFailure) as failure:
            take(reader)
        assert failure.value.code == code


def test_what_came_before_something_that_is_no_frame_is_found_first() -> None:
    reader = FrameReader(greeted=True)
    reader.feed(frames.ping_ack(b"12345678") + frames.header(7, frames.PING, 0, 0))
    assert reader.next_frames() == [(frames.PING, frames.ACK, 0, b"12345678")]
    with pytest.raises(ConnectionFailure):
        reader.next_frames()
