import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http1.body_decoder import ChunkedDecoder, LengthDecoder
from pilothouse.net.request_body import MalformedBody


def decode(decoder: ChunkedDecoder | LengthDecoder, pieces: list[bytes]) -> tuple[bytes, bytes | None]:
    payload = b""
    for index, piece in enumerate(pieces):
        some, rest = decoder.feed(piece)
        payload += some
        if rest is not None:
            return payload, rest + b"".join(pieces[index + 1 :])
    return payload, None


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


@pytest.mark.parametrize(
    ("wire", "payload", "rest"),
    [
        (b"0\r\n\r\n", b"", b""),
        (b"5\r\nhello\r\n0\r\n\r\nGET", b"hello", b"GET"),
        (b"A;ext=1\r\n0123456789\r\n1 \r\n\n\r\n0\r\n\r\n", b"0123456789\n", b""),
        (b"1\r\nx\r\n0\r\nTrailer: y\r\nB: z\r\n\r\nrest", b"x", b"rest"),
        (b"00000001\r\nx\r\n0\r\n\r\n", b"x", b""),
    ],
)
def test_chunked_whole_and_byte_by_byte(wire: bytes, payload: bytes, rest: bytes) -> None:
    assert decode(ChunkedDecoder(), [wire]) == (payload, rest)
    assert decode(ChunkedDecoder(), [bytes([b]) for b in wire]) == (payload, rest)


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"0x1\r\n",
        b"1\nx\r\n",
        b"1\r\nxy\r\n",
        b"1\r\nx\n",
        b"1;a\rb\r\nx\r\n",
        b" 1\r\nx\r\n",
        b"11111111111111111\r\n",
        b"1;" + b"e" * 5000,
        b"0\r\n" + b"A: b\r\n" * 1000,
        (b"1;" + b"e" * 1000 + b"\r\nx\r\n") * 20,
    ],
)
def test_malformed_chunks(wire: bytes) -> None:
    with pytest.raises(MalformedBody):
        decode(ChunkedDecoder(), [wire])
    with pytest.raises(MalformedBody):
        decode(ChunkedDecoder(), [bytes([b]) for b in wire])


@given(
    st.lists(st.binary(min_size=1, max_size=40)), st.lists(st.integers(0, 10_000), max_size=6), st.binary(max_size=9)
)
def test_chunked_survives_any_split(chunks: list[bytes], cuts: list[int], after: bytes) -> None:
    wire = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n" + after
    assert decode(ChunkedDecoder(), split(wire, cuts)) == (b"".join(chunks), after)


@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(0, 10_000), max_size=6), st.binary(max_size=9))
def test_length_survives_any_split(body: bytes, cuts: list[int], after: bytes) -> None:
    assert decode(LengthDecoder(len(body)), split(body + after, cuts)) == (body, after)


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"\r\n", "empty hex number for chunk length"),
        (b";a\r\n", "empty hex number for chunk length"),
        (b"0x1\r\n", "invalid byte in chunk length"),
        (b"1 ;a\r\n", "invalid byte in chunk length"),
        (b"1" * 17 + b"\r\n", "http chunk length too large"),
        (b"1" * 16 + b"z\r\n", "invalid byte in chunk length"),
        (b"1;a\rb\r\n", "invalid CR in chunked line"),
        (b"1\n", "chunked line ends with bare LF"),
        (b"1\r\nxy\r\n", "malformed chunked encoding"),
    ],
)
def test_what_is_wrong_with_a_chunk(wire: bytes, why: str) -> None:
    with pytest.raises(MalformedBody, match=f"^{why}$"):
        ChunkedDecoder().feed(wire)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_either_decoded_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedBody):
        decode(ChunkedDecoder(), [data])
