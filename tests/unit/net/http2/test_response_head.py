import hpack
import pytest

from pilothouse.net.http2 import response_head
from pilothouse.net.messages import UnsafeHeader


@pytest.mark.parametrize("status", [200, 201, 404, 422, 507])
@pytest.mark.parametrize("length", [None, 0, 12345])
def test_another_decoder_understands_it(status: int, length: int | None) -> None:
    extra = [(b"X-Long", b"v" * 300), (b"Cache-Control", b"no-cache"), (b"Audit-Id", b"1"), (b"Connection", b"close")]
    for _ in range(2):  # the second time from memory
        block = response_head.block(status, b"application/json", extra, length)
        fields = hpack.Decoder().decode(block)
        assert fields[:2] == [(":status", str(status)), ("content-type", "application/json")]
        assert fields[2:5] == [("x-long", "v" * 300), ("cache-control", "no-cache"), ("audit-id", "1")]
        assert fields[5][0] == "date"
        assert fields[6:] == ([] if length is None else [("content-length", str(length))])


@pytest.mark.parametrize("pair", [(b"a", b"b\r\nc"), (b"a", b"b\0"), (b"a b", b"c"), (b"", b"c")])
def test_what_would_break_out_is_refused(pair: tuple[bytes, bytes]) -> None:
    with pytest.raises(UnsafeHeader):
        response_head.block(200, b"", [pair], None)
