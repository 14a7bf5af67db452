"""Calls to a key management service over gRPC on a Unix socket. ``grpcio`` is loaded when the first service is used."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.storage.encryption import messages
from pilothouse.storage.encryption.kms import Encrypted, Status
from pilothouse.storage.encryption.transforming import TransformFailed

_SERVICE: Final = "/v2.KeyManagementService/"


class KMSClient:
    """One service. Connects when first called."""

    def __init__(self, endpoint: str, timeout: float) -> None:
        self._target = "unix:" + endpoint.removeprefix("unix://").removeprefix("unix:")
        self._timeout = timeout
        self._channel: Any = None

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
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _call(self, method: str, body: bytes) -> dict[int, list[bytes | int]]:
        try:
            import grpc  # type: ignore[import-untyped]
        except ImportError:
            raise TransformFailed("KMS providers need the package grpcio (pip install 'pilothouse[grpc]')") from None
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._target)
        call = self._channel.unary_unary(_SERVICE + method)
        try:
            return messages.decode(await call(body, timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise TransformFailed(f"rpc error: code = {error.code().name} desc = {error.details()}") from None
        except messages.MalformedMessage as error:
            raise TransformFailed(f"{method}: {error}") from None
