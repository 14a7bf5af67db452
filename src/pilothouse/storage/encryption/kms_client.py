"""The calls of the key management service."""

from __future__ import annotations

import time
from typing import Final

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.net.unary_calls import CallFailed, UnaryCalls
from pilothouse.storage.encryption.kms import Encrypted, Status
from pilothouse.storage.encryption.metrics import UNKNOWN_CODE, EncryptionMetrics
from pilothouse.storage.encryption.transforming import TransformFailed

_SERVICE: Final = "v2.KeyManagementService"


class KMSClient:
    """One service. Connects when first called."""

    def __init__(self, endpoint: str, timeout: float, name: str = "", metrics: EncryptionMetrics | None = None) -> None:
        self._calls = UnaryCalls(endpoint, _SERVICE)
        self._timeout, self._name, self._metrics = timeout, name, (metrics or EncryptionMetrics()).services

    async def status(self) -> Status:
        """The service's state."""
        answer = await self._call("Status", b"")
        return Status(messages.text_of(answer, 1), messages.text_of(answer, 2), messages.text_of(answer, 3))

    async def encrypt(self, uid: str, plaintext: bytes) -> Encrypted:
        """Have a seed encrypted."""
        answer = await self._call("Encrypt", messages.encode({1: plaintext, 2: uid}))
        return Encrypted(messages.data_of(answer, 1), messages.text_of(answer, 2), messages.map_of(answer, 3))

    async def decrypt(self, uid: str, encrypted: Encrypted) -> bytes:
        """Have a seed decrypted."""
        fields: dict[int, messages.Value] = {
            1: encrypted.ciphertext,
            2: uid,
            3: encrypted.key_id,
            4: encrypted.annotations,
        }
        return messages.data_of(await self._call("Decrypt", messages.encode(fields)), 1)

    async def close(self) -> None:
        """Close the connection."""
        await self._calls.close()

    async def _call(self, method: str, body: bytes) -> dict[int, list[bytes | int]]:
        started, code = time.perf_counter(), "OK"
        try:
            return messages.decode(await self._calls.call(method, body, self._timeout))
        except CallFailed as failure:
            code = failure.code or UNKNOWN_CODE
            raise TransformFailed(str(failure), failure.code or UNKNOWN_CODE) from None
        except messages.MalformedMessage as error:
            raise TransformFailed(f"{method}: {error}") from None
        finally:
            self._metrics.called(self._name, f"/{_SERVICE}/{method}", code, time.perf_counter() - started)
