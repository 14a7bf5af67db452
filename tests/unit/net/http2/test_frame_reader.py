import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frame_reader import FrameReader
from pilothouse.net.http2.frames import ConnectionFailure

FRAME = st.tuples(
    st.sampled_from([0, 1, 4, 7, 9, 77]), st.integers(0, 255), st.integers(0, 2**31 - 1), st.binary(max_size=50)
)


@given(st.lists(FRAME, max_size=8), st.lists(st.integers(1, 60), max_size=40))
def test_frames_are_found_in_whatever_pieces_they_come(
    sent: list[tuple[int, int, int, bytes]], cuts: list[int]
) -> None:
    wire = frames.PREFACE + b"".join(frames.header(len(p), kind, flags, n) + p for kind, flags, n, p in sent)
    reader, found = FrameReader(), []
    while wire:
        size = cuts.pop() if cuts else len(wire)
        reader.feed(wire[:size])
        wire = wire[size:]
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
    reader = FrameReader()
    reader.feed(wire)
    with pytest.raises(ConnectionFailure) as failure:
        reader.next_frame()
    assert failure.value.code == code
