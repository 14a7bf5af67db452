import hpack as reference
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.http2.hpack import HeaderDecoder, HeaderListTooLarge, InvalidBlock, encode_integer, encode_string

NAMES = st.sampled_from([b":path", b"accept", b"x-a", b"authorization", b"user-agent", b"cookie"])
FIELDS = st.lists(st.tuples(NAMES, st.binary(max_size=300)), max_size=20)


@given(st.lists(st.tuples(FIELDS, st.booleans(), st.sampled_from([None, 0, 64, 200, 4096])), max_size=6))
def test_blocks_of_another_encoder_are_understood(
    conversation: list[tuple[list[tuple[bytes, bytes]], bool, int | None]],
) -> None:
    encoder, decoder = reference.Encoder(), HeaderDecoder()
    for fields, huffman, size in conversation:
        if size is not None:
            encoder.header_table_size = size
        assert decoder.decode(bytes(encoder.encode(fields, huffman=huffman)), 1 << 20) == fields


@given(st.binary(max_size=200))
def test_noise_is_refused_or_decoded_but_never_fails(noise: bytes) -> None:
    decoder = HeaderDecoder()
    for _ in range(2):
        try:
            decoder.decode(noise, 4096)
        except (InvalidBlock, HeaderListTooLarge):
            break


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",  # index 0
        b"\xbe",  # beyond the static table, with nothing in the other
        b"\xff\xff\xff\xff\xff\xff",  # an integer without end
        b"\x00\x05ab",  # a string beyond the block
        b"\x00\x81\x00\x00",  # padding that is not all ones
        b"\x00\x84\xff\xff\xff\xff\x00",  # the end of the code within a string
        b"\x3f\xe2\x1f",  # a table of 4097
        b"\x20\x20\x20",  # resized again and again
        b"\x82\x20",  # resized after a field
        b"\x40",
    ],
)
def test_invalid_blocks(block: bytes) -> None:
    with pytest.raises(InvalidBlock):
        HeaderDecoder().decode(block, 1 << 20)


def test_a_small_block_cannot_become_a_large_list() -> None:
    decoder = HeaderDecoder()
    value = b"x" * 4000
    decoder.decode(b"\x40" + encode_string(b"a") + encode_string(value), 1 << 20)
    with pytest.raises(HeaderListTooLarge):
        decoder.decode(b"\xbe" * 1000, 1 << 18)


def test_many_small_fields_are_too_many() -> None:
    with pytest.raises(HeaderListTooLarge):
        HeaderDecoder().decode(b"\x82" * 2001, 1 << 20)


def test_the_version_tells_whether_a_block_still_means_the_same() -> None:
    decoder = HeaderDecoder()
    decoder.decode(b"\x82\x04" + encode_string(b"/x"), 4096)
    assert decoder.version == 0
    decoder.decode(b"\x44" + encode_string(b"/x"), 4096)
    assert decoder.version == 1
    decoder.decode(b"\x20", 4096)
    assert decoder.version > 1


@given(st.integers(0, 1 << 27), st.integers(1, 8))
def test_integers(value: int, bits: int) -> None:
    decoded, length = reference.hpack.decode_integer(encode_integer(value, bits), bits)
    assert (decoded, length) == (value, len(encode_integer(value, bits)))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), min_size=4, max_size=30),
)
def test_blocks_that_begin_alike(said: list[tuple[int, int, bool]]) -> None:
    """Whatever is remembered of the block before, each means what it says, and both sides have the same table."""
    decoder, encoder = HeaderDecoder(), reference.Encoder()
    for beginning, end, indexed in said:
        fields = [(b"x-%d-%d" % (beginning, number), b"v") for number in range(5)] + [(b"audit-id", b"%d" % end)]
        if indexed:
            block = bytes(encoder.encode(fields))
        else:
            block = b"".join(b"\0" + encode_string(name) + encode_string(value) for name, value in fields)
        assert decoder.decode(block, 10_000) == fields
