import base64
import binascii
from types import SimpleNamespace

import pytest
from tests.unit.machinery.shares import MOST_IN_ONE_CALL, Shares

from pilothouse.machinery import base64_text


@pytest.mark.parametrize("size", [0, 1, 2, 3, 24_575, 24_576, 24_577, 100_000])
def test_what_was_written_is_read(size: int) -> None:
    data = bytes(at % 251 for at in range(size))
    digits = base64.b64encode(data)
    assert base64_text.decode(digits) == base64_text.decode(digits.decode()) == data
    assert base64_text.is_canonical(digits.decode())


@pytest.mark.parametrize("fault", ["A", "AA", "A===", "AAAA=", "AA==AAAA", "AA=A", "AA\n=", "AA-_", "éAAA"])
@pytest.mark.parametrize("before", [0, 32 * 1024 - 4, 32 * 1024])
def test_what_is_no_base64(fault: str, before: int) -> None:
    digits = "A" * before + fault
    assert not base64_text.is_canonical(digits)
    with pytest.raises(ValueError) as caught:
        base64_text.decode(digits)
    assert fault.startswith("é") or isinstance(caught.value, binascii.Error)


def test_padding_between_pieces() -> None:
    with pytest.raises(binascii.Error):
        base64_text.decode("A" * (32 * 1024 - 1) + "=" + "AAAA")


def test_bits_that_are_left_over() -> None:
    assert base64_text.decode("QR==") == b"A"
    assert not base64_text.is_canonical("QR==")


def test_no_call_is_given_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, digits = Shares(), base64.b64encode(bytes(400_000)).decode()
    read = SimpleNamespace(a2b_base64=shares.of(binascii.a2b_base64), b2a_base64=binascii.b2a_base64)
    monkeypatch.setattr(base64_text, "binascii", read)
    assert base64_text.is_canonical(digits)
    assert shares.most <= MOST_IN_ONE_CALL
    assert shares.total >= len(digits)
