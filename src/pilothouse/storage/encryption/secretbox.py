"""XSalsa20 and Poly1305, the secretbox of NaCl.

PyNaCl (``pip install 'pilothouse[secretbox]'``) has it and is used where it is installed: a megabyte takes some ms.
It is no requirement, as few use this cipher; ``cryptography``, which is one, has no Salsa20. Without it the cipher is
computed here, all blocks of a value at once: a word of the state is one long integer with a lane of 64 bits for each
block, whose upper half takes the carry of an addition and the bits that a rotation pushes out. A kilobyte takes about
half a millisecond, a megabyte half a second and more.

    sum       (a + b) & MASK                       rotation   t = x << r;  (t & MASK) | (t >> 32 & MASK)
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Callable
from typing import Final

from pilothouse.storage.encryption.aes import TOO_SHORT
from pilothouse.storage.encryption.transforming import TransformFailed

_NONCE: Final = 24
_TAG: Final = 16
_FORGED: Final = "output array was not large enough for encryption"
Cipher = Callable[[bytes, bytes, bytes], bytes]
"""Text, nonce and key; what becomes of the text."""
_SIGMA: Final = struct.unpack("<4I", b"expand 32-byte k")
# One column round: target ^= rotate(first + second, bits), on the state seen as a 4 by 4 matrix.
_COLUMNS: Final = (
    (4, 0, 12, 7), (8, 4, 0, 9), (12, 8, 4, 13), (0, 12, 8, 18),
    (9, 5, 1, 7), (13, 9, 5, 9), (1, 13, 9, 13), (5, 1, 13, 18),
    (14, 10, 6, 7), (2, 14, 10, 9), (6, 2, 14, 13), (10, 6, 2, 18),
    (3, 15, 11, 7), (7, 3, 15, 9), (11, 7, 3, 13), (15, 11, 7, 18),
)  # fmt: skip
_ROWS: Final = tuple((t % 4 * 4 + t // 4, a % 4 * 4 + a // 4, b % 4 * 4 + b // 4, bits) for t, a, b, bits in _COLUMNS)


def _run_rounds(state: list[int], mask: int) -> None:
    """Twenty rounds, on all lanes."""
    for _ in range(10):
        for steps in (_COLUMNS, _ROWS):
            for target, first, second, bits in steps:
                moved = (state[first] + state[second] & mask) << bits
                state[target] ^= (moved & mask) | (moved >> 32 & mask)


def _layout(key: bytes, middle: tuple[int, ...]) -> list[int]:
    k = struct.unpack("<8I", key)
    return [_SIGMA[0], *k[:4], _SIGMA[1], *middle, _SIGMA[2], *k[4:], _SIGMA[3]]


def derive_key(key: bytes, nonce: bytes) -> bytes:
    """HSalsa20: a key for the first 16 bytes of a long nonce."""
    state = _layout(key, struct.unpack("<4I", nonce))
    _run_rounds(state, 0xFFFFFFFF)
    return struct.pack("<8I", *(state[i] for i in (0, 5, 10, 15, 6, 7, 8, 9)))


def key_stream(key: bytes, nonce: bytes, size: int) -> bytes:
    """The first bytes of XSalsa20's stream."""
    blocks = -(-size // 64)
    ones = sum(1 << 64 * lane for lane in range(blocks))
    mask = ones * 0xFFFFFFFF
    short = struct.unpack("<2I", nonce[16:])
    start = [word * ones for word in _layout(derive_key(key, nonce[:16]), (*short, 0, 0))]
    start[8] = sum(lane << 64 * lane for lane in range(blocks))
    state = list(start)
    _run_rounds(state, mask)
    words = array("I", bytes(64 * blocks))
    for position, (word, before) in enumerate(zip(state, start, strict=True)):
        lanes = array("I", (word + before & mask).to_bytes(8 * blocks, sys.byteorder))
        words[position::16] = lanes[::2] if sys.byteorder == "little" else lanes[::-2]
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()[:size]


def _mix(data: bytes, stream: bytes) -> bytes:
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")


def make_secretbox(key: bytes) -> SodiumSecretbox | Secretbox:
    """The fastest that is installed; what one has sealed the other opens."""
    try:
        from nacl import bindings
    except ImportError:
        return Secretbox(key)
    return SodiumSecretbox(key, bindings.crypto_secretbox, bindings.crypto_secretbox_open)


class SodiumSecretbox:
    """Encrypts and authenticates by libsodium, with a random nonce for every value."""

    def __init__(self, key: bytes, seal: Cipher, open: Cipher) -> None:
        self._key, self._seal, self._open = key, seal, open

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """Nonce, tag, encrypted value."""
        nonce = os.urandom(_NONCE)
        return nonce + self._seal(data, nonce, self._key)

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed."""
        from nacl.exceptions import CryptoError

        if len(data) < _NONCE + _TAG:
            raise TransformFailed(TOO_SHORT)
        try:
            return self._open(data[_NONCE:], data[:_NONCE], self._key), False
        except CryptoError:
            raise TransformFailed(_FORGED) from None


class Secretbox:
    """The same without a library."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """Nonce, tag, encrypted value."""
        from cryptography.hazmat.primitives.poly1305 import Poly1305

        nonce = os.urandom(_NONCE)
        stream = key_stream(self._key, nonce, 32 + len(data))
        sealed = _mix(data, stream[32:])
        return nonce + Poly1305.generate_tag(stream[:32], sealed) + sealed

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.poly1305 import Poly1305

        if len(data) < _NONCE + _TAG:
            raise TransformFailed(TOO_SHORT)
        nonce, tag, sealed = data[:_NONCE], data[_NONCE : _NONCE + _TAG], data[_NONCE + _TAG :]
        stream = key_stream(self._key, nonce, 32 + len(sealed))
        try:
            Poly1305.verify_tag(stream[:32], sealed, tag)
        except InvalidSignature:
            raise TransformFailed(_FORGED) from None
        return _mix(sealed, stream[32:]), False
