"""Envelope encryption with a key management service (KMS v2).

The service never sees values. It encrypts a seed, once for as long as its own key stays; keys for values are derived
from the seed, and the encrypted seed is stored with every value. Writing needs no call at all. Reading calls once for
every seed not seen before. The service is asked for its state every minute: when it names another key a new seed is
made, and values under the old one are stale; when it does not answer for three minutes, writes are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.machinery.single_flight import SingleFlight
from pilothouse.storage.encryption.aes import AESGCM, DerivedAESGCM
from pilothouse.storage.encryption.metrics import EncryptionMetrics
from pilothouse.storage.encryption.transforming import KeyMissing, Transformer, TransformFailed

logger = logging.getLogger(__name__)
HEALTHY_SECONDS: Final = 60.0
UNHEALTHY_SECONDS: Final = 10.0
WRITE_SECONDS: Final = 180.0
_SEED_TYPE: Final = 1
_MAX_SEEDS: Final = 1024
_MAX_KEY_ID: Final = 1024
_MAX_SOURCE: Final = 1024
_MAX_ANNOTATIONS: Final = 32 * 1024


class Status(NamedTuple):
    """What a service says about itself."""

    version: str
    healthz: str
    key_id: str


class Encrypted(NamedTuple):
    """What a service makes of a seed."""

    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


class Service(Protocol):
    """A key management service. All calls raise ``TransformFailed``."""

    async def status(self) -> Status: ...

    async def encrypt(self, uid: str, plaintext: bytes) -> Encrypted: ...

    async def decrypt(self, uid: str, encrypted: Encrypted) -> bytes: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _State:
    transformer: Transformer
    encrypted: Encrypted
    until: float


class Envelope:
    """The transformer of one service. ``refresh`` must have succeeded once before values can be written."""

    def __init__(
        self,
        name: str,
        service: Service,
        clock: Callable[[], float] = time.monotonic,
        metrics: EncryptionMetrics | None = None,
    ) -> None:
        self.name = name
        self._metrics = metrics or EncryptionMetrics()
        self._service, self._clock = service, clock
        self._state: _State | None = None
        self._seeds: dict[bytes, Transformer] = {}
        self._fetching: SingleFlight[bytes, None] = SingleFlight("key of a key management service")
        self._version = ""
        self.error = "the key management service has not been asked yet"

    async def refresh(self) -> None:
        """Ask the service for its state and take a new seed if its key changed; ``error`` says what is wrong."""
        try:
            await self._refresh()
        except TransformFailed as failure:
            self.error = f"kmsv2 Provider {self.name} is not healthy, error: {failure}"
            logger.warning("%s", self.error)
        else:
            self.error = ""

    async def _refresh(self) -> None:
        status = await self._service.status()
        if status.healthz != "ok":
            raise TransformFailed(f"got unexpected healthz status: {status.healthz}")
        if status.version not in ("v2", "v2beta1"):
            raise TransformFailed(f"expected KMSv2 API version v2, got {status.version}")
        self._version = self._version or status.version
        if status.version != self._version:
            raise TransformFailed(
                "KMSv2 API version should not change after the initial status response version "
                f"{self._version}, got {status.version}"
            )
        try:
            _check_key_id(status.key_id)
        except TransformFailed:
            self._metrics.services.misnamed(self.name, "empty" if not status.key_id else "too_long")
            raise
        self._metrics.services.named(self.name, status.key_id)
        until = self._clock() + WRITE_SECONDS
        if self._state is not None and self._state.encrypted.key_id == status.key_id:
            self._state = replace(self._state, until=until)
            return
        seed = os.urandom(32)
        encrypted = await self._service.encrypt(str(uuid.uuid4()), seed)
        _check(encrypted)
        if encrypted.key_id != status.key_id:
            raise TransformFailed("failed to rotate DEK: the service encrypts with another key than it names")
        self._state = _State(DerivedAESGCM(seed), encrypted, until)
        self._keep(_fingerprint(_SEED_TYPE, encrypted), self._state.transformer)

    def to_storage(self, data: bytes, context: bytes) -> bytes:
        """The encrypted value with its encrypted seed. Raises TransformFailed."""
        state = self._state
        if state is None:
            raise TransformFailed(self.error)
        if self._clock() > state.until:
            raise TransformFailed(f"encryptedDEKSource with keyID hash {_hash(state.encrypted.key_id)} expired")
        sealed = state.transformer.to_storage(data, context)
        encrypted = state.encrypted
        self._metrics.services.sealed(self.name, encrypted.key_id)
        return messages.encode(
            {1: sealed, 2: encrypted.key_id, 3: encrypted.ciphertext, 4: encrypted.annotations, 5: _SEED_TYPE}
        )

    def from_storage(self, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """The value. Raises TransformFailed, and KeyMissing for a seed not seen before."""
        sealed, encrypted, kind = _read(data)
        fingerprint = _fingerprint(kind, encrypted)
        transformer = self._seeds.get(fingerprint)
        if transformer is None:
            self._metrics.missed()
            raise KeyMissing(lambda: self._fetch(fingerprint, kind, encrypted))
        found, stale = transformer.from_storage(sealed, context)
        self._metrics.services.opened(self.name, encrypted.key_id)
        state = self._state
        current = state is not None and state.encrypted.key_id == encrypted.key_id and kind == _SEED_TYPE
        return found, stale or not current

    async def _fetch(self, fingerprint: bytes, kind: int, encrypted: Encrypted) -> None:
        """Have a seed decrypted; many who need the same one share the call."""
        await self._fetching.get(fingerprint, lambda: self._decrypt(fingerprint, kind, encrypted))

    async def _decrypt(self, fingerprint: bytes, kind: int, encrypted: Encrypted) -> None:
        try:
            key = await self._service.decrypt(str(uuid.uuid4()), encrypted)
        except TransformFailed as failure:
            raise TransformFailed(f"failed to decrypt DEK, error: {failure}") from None
        try:
            self._keep(fingerprint, DerivedAESGCM(key) if kind == _SEED_TYPE else AESGCM(key))
        except ValueError:
            raise TransformFailed("the key management service gave a key of a wrong size") from None

    def _keep(self, fingerprint: bytes, transformer: Transformer) -> None:
        while len(self._seeds) >= _MAX_SEEDS:
            del self._seeds[next(iter(self._seeds))]
        self._seeds[fingerprint] = transformer
        self._metrics.services.remember(self.name, len(self._seeds))

    async def keep_fresh(self) -> None:
        """Refresh for ever."""
        while True:
            await asyncio.sleep(UNHEALTHY_SECONDS if self.error else HEALTHY_SECONDS)
            await self.refresh()

    async def close(self) -> None:
        """End the connection."""
        await self._fetching.close()
        await self._service.close()


def _read(data: bytes) -> tuple[bytes, Encrypted, int]:
    try:
        message = messages.decode(data)
        encrypted = Encrypted(messages.data_of(message, 3), messages.text_of(message, 2), messages.map_of(message, 4))
    except messages.MalformedMessage as error:
        raise TransformFailed(str(error)) from None
    kind = messages.number_of(message, 5)
    if kind not in (0, _SEED_TYPE):
        raise TransformFailed(f"unknown encryptedDEKSourceType: {kind}")
    sealed = messages.data_of(message, 1)
    if not sealed:
        raise TransformFailed("encrypted data is empty")
    _check(encrypted)
    return sealed, encrypted, kind


def _check(encrypted: Encrypted) -> None:
    size = len(encrypted.ciphertext)
    if not size:
        raise TransformFailed("failed to validate encrypted DEK source: encrypted DEK source is empty")
    if size > _MAX_SOURCE:
        raise TransformFailed(
            f"failed to validate encrypted DEK source: encrypted DEK source is {size} bytes, which exceeds the max "
            f"size of {_MAX_SOURCE}"
        )
    _check_key_id(encrypted.key_id)
    total = sum(len(key.encode()) + len(value) for key, value in encrypted.annotations.items())
    if total > _MAX_ANNOTATIONS:
        raise TransformFailed(
            f"failed to validate annotations: total size of annotations is {total}, which exceeds the max size of "
            f"{_MAX_ANNOTATIONS}"
        )


def _check_key_id(key_id: str) -> None:
    size = len(key_id.encode())
    if not size:
        raise TransformFailed("failed to validate key id: keyID is empty")
    if size > _MAX_KEY_ID:
        raise TransformFailed(
            f"failed to validate key id: keyID is {size} bytes, which exceeds the max size of {_MAX_KEY_ID}"
        )


def _fingerprint(kind: int, encrypted: Encrypted) -> bytes:
    digest = hashlib.sha256()
    parts = [str(kind).encode(), encrypted.ciphertext, encrypted.key_id.encode()]
    for key in sorted(encrypted.annotations):
        parts += [key.encode(), encrypted.annotations[key]]
    for part in parts:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()


def _hash(key_id: str) -> str:
    return f'"sha256:{hashlib.sha256(key_id.encode()).hexdigest()}"'
