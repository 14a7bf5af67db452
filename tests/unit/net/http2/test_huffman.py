import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http2 import huffman

ENCODER = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


@given(st.binary(max_size=100))
def test_what_another_encoder_makes_is_understood(text: bytes) -> None:
    assert huffman.decode(ENCODER.encode(text)) == text


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff", b"\xff\xff\xff\xff", ENCODER.encode(b"abc") + b"\xff"])
def test_wrong_endings(data: bytes) -> None:
    with pytest.raises(huffman.InvalidHuffman):
        huffman.decode(data)
