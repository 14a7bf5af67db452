"""AES in the two modes of the configuration: CBC with padding, and GCM bound to the object's key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pilothouse.storage.encryption.transforming import TransformFailed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

_BLOCK: Final = 16
_NONCE: Final = 12
TOO_SHORT: Final = "the stored data was shorter than the required size"


class AESCBC:
    """Encrypts, but does not notice changes: what is stored is not authenticated."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """The initialization vector, then the padded and encrypted value."""
        vector = os.urandom(_BLOCK)
        size = _BLOCK - len(data) % _BLOCK
        encryptor = self._cipher(vector).encryptor()
        return vector + encryptor.update(data + bytes([size]) * size) + encryptor.finalize()

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed."""
        if len(data) < _BLOCK:
            raise TransformFailed(TOO_SHORT)
        if len(data) % _BLOCK:
            raise TransformFailed("the stored data is not a multiple of the block size")
        decryptor = self._cipher(data[:_BLOCK]).decryptor()
        padded = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
        size = padded[-1] if padded else 0
        if size == 0 or size > len(padded):
            raise TransformFailed("invalid PKCS7 data (empty or not padded)")
        if padded[-size:] != bytes([size]) * size:
            raise TransformFailed("invalid padding on input")
        return padded[:-size], False

    def _cipher(self, vector: bytes) -> Cipher[modes.CBC]:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(self._key), modes.CBC(vector))


class AESGCM:
    """Encrypts and authenticates, with a random nonce for every value."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import aead

        self._seal = aead.AESGCM(key)

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """The nonce, then the sealed value."""
        nonce = os.urandom(_NONCE)
        return nonce + self._seal.encrypt(nonce, data, context)

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed."""
        from cryptography.exceptions import InvalidTag

        if len(data) < _NONCE:
            raise TransformFailed(TOO_SHORT)
        try:
            return self._seal.decrypt(data[:_NONCE], data[_NONCE:], context), False
        except (InvalidTag, ValueError):
            raise TransformFailed("cipher: message authentication failed") from None


class DerivedAESGCM:
    """AES-GCM with a key of its own for every value, derived from a seed and 32 random bytes kept with the value."""

    _INFO: Final = 32

    def __init__(self, seed: bytes) -> None:
        if len(seed) < 32:
            raise TransformFailed(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """The random bytes, then what AES-GCM makes of the value."""
        info = os.urandom(self._INFO)
        return info + AESGCM(self._derive(info)).to_storage(data, context)

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed."""
        if len(data) < self._INFO:
            raise TransformFailed(TOO_SHORT)
        return AESGCM(self._derive(data[: self._INFO])).from_storage(data[self._INFO :], context)

    def _derive(self, info: bytes) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return HKDFExpand(SHA256(), 32, info).derive(self._seed)
