"""The calls of the key management service."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.net.unary_calls import CallFailed, UnaryCalls
from pilothouse.storage.encryption.kms import Encrypted, Status
from pilothouse.storage.encryption.metrics import UNKNOWN_CODE, EncryptionMetrics
from pilothouse.storage.encryption.transforming import TransformFailed

_SERVICE: Final = "v2.KeyManagementService"
_MOST_BYTES: Final = 64 * 1024
"""Of an answer: twice what an encrypted seed, its key and its annotations may have."""
_Message = dict[int, list[bytes | int]]
Answer = TypeVar("Answer")


class KMSClient:
    """One service. Connects when first called."""

    def __init__(self, endpoint: str, timeout: float, name: str = "", metrics: EncryptionMetrics | None = None) -> None:
        self._calls = UnaryCalls(endpoint, _SERVICE, _MOST_BYTES)
        self._timeout, self._name, self._metrics = timeout, name, (metrics or EncryptionMetrics()).services

    async def status(self) -> Status:
        """The service's state."""
        return await self._call("Status", b"", _status)

    async def encrypt(self, uid: str, plaintext: bytes) -> Encrypted:
        """Have a seed encrypted."""
        return await self._call("Encrypt", messages.encode({1: plaintext, 2: uid}), _encrypted)

    async def decrypt(self, uid: str, encrypted: Encrypted) -> bytes:
        """Have a seed decrypted."""
        fields: dict[int, messages.Value] = {
            1: encrypted.ciphertext,
            2: uid,
            3: encrypted.key_id,
            4: encrypted.annotations,
        }
        return await self._call("Decrypt", messages.encode(fields), lambda answer: messages.data_of(answer, 1))

    async def close(self) -> None:
        """Close the connection."""
        await self._calls.close()

    async def _call(self, method: str, body: bytes, read: Callable[[_Message], Answer]) -> Answer:
        started, code = time.perf_counter(), "OK"
        try:
            return read(messages.decode(await self._calls.call(method, body, self._timeout)))
        except CallFailed as failure:
            code = failure.code or UNKNOWN_CODE
            raise TransformFailed(str(failure), failure.code or UNKNOWN_CODE) from None
        except messages.MalformedMessage as error:
            raise TransformFailed(f"{method}: {error}") from None
        finally:
            self._metrics.called(self._name, f"/{_SERVICE}/{method}", code, time.perf_counter() - started)


def _status(answer: _Message) -> Status:
    return Status(messages.text_of(answer, 1), messages.text_of(answer, 2), messages.text_of(answer, 3))


def _encrypted(answer: _Message) -> Encrypted:
    return Encrypted(messages.data_of(answer, 1), messages.text_of(answer, 2), messages.map_of(answer, 3))
