"""Reads long base64 without one long call, which would keep the interpreter's lock for milliseconds."""

from __future__ import annotations

import binascii
from typing import Final

_PIECE: Final = 32 * 1024
"""Of digits, four of which are three bytes: pieces are read alone."""


def decode(digits: bytes | str) -> bytes:
    """What base64 without blanks says. Raises ``binascii.Error``, or ``ValueError`` where it is not even ASCII."""
    if len(digits) % 4:
        raise binascii.Error("digits without their padding, or padding without digits")
    if len(digits) <= _PIECE:
        return binascii.a2b_base64(digits, strict_mode=True)
    pieces = [binascii.a2b_base64(digits[at : at + _PIECE], strict_mode=True) for at in range(0, len(digits), _PIECE)]
    if any(len(piece) % 3 for piece in pieces[:-1]):
        raise binascii.Error("padding within the text")
    return b"".join(pieces)


def is_canonical(digits: str) -> bool:
    """Whether this is how the bytes that it says are written: of its last digits, no bits are left over."""
    try:
        decode(digits)
        return binascii.b2a_base64(decode(digits[-4:]), newline=False).decode() == digits[-4:]
    except ValueError:
        return False
