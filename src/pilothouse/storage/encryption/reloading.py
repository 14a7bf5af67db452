"""An encrypting backend by a configuration file, which is read again when it changes."""

from __future__ import annotations

import asyncio

from pilothouse.machinery.reload_metrics import ReloadMetrics
from pilothouse.machinery.reloaded_file import ReloadedFile
from pilothouse.machinery.supervision import Supervised, Supervisor
from pilothouse.storage.backends.contract import Backend
from pilothouse.storage.encryption.backend import EncryptedBackend
from pilothouse.storage.encryption.configuration import KMS, parse_configuration
from pilothouse.storage.encryption.kms import Envelope
from pilothouse.storage.encryption.kms_client import KMSClient
from pilothouse.storage.encryption.metrics import EncryptionMetrics
from pilothouse.storage.encryption.transformers import Transformers


class Encryption:
    """The encrypting backend and what keeps its keys fresh."""

    def __init__(
        self,
        backend: Backend,
        path: str,
        root: str,
        metrics: EncryptionMetrics,
        server: str = "",
        *,
        reload: bool,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor("encryption")
        self._metrics, self.reloads = metrics, ReloadMetrics("encryption", "encryption configuration", server)
        self._root, self._reload = root, reload
        try:
            self._file = ReloadedFile(path, lambda data: parse_configuration(data, path), self.reloads)
        except ValueError as error:
            raise ValueError(f"error while parsing file {path}: {error}") from None
        self.backend = EncryptedBackend(backend, self._make(), self._supervisor)
        self._asking: list[Supervised] = []

    async def start(self) -> None:
        """Ask the key management services for their keys, and go on asking."""
        await self._begin(self.backend.transformers)

    async def poll(self) -> None:
        """Look whether the file changed, where that is wanted."""
        if not self._reload or not await asyncio.to_thread(self._file.poll):
            return
        made = self._make()
        old, asking = self.backend.transformers, self._asking
        self._asking = []
        await self._begin(made)
        self.backend.transformers = made
        self._file.accepted()
        await _end(old, asking)

    def error(self) -> str:
        """What is wrong with the key management services; empty if nothing."""
        return "; ".join(envelope.error for envelope in self.backend.transformers.envelopes if envelope.error)

    @property
    def needs_check(self) -> bool:
        """Whether key management services are used, or may be once the file changes."""
        return self._reload or bool(self.backend.transformers.envelopes)

    async def close(self) -> None:
        """Stop asking."""
        asking, self._asking = self._asking, []
        await _end(self.backend.transformers, asking)

    def _make(self) -> Transformers:
        return Transformers(self._file.value, self._root, self._make_envelope, self._metrics)

    def _make_envelope(self, settings: KMS) -> Envelope:
        client = KMSClient(settings.endpoint, settings.timeout, settings.name, self._metrics)
        return Envelope(settings.name, client, metrics=self._metrics)

    async def _begin(self, transformers: Transformers) -> None:
        for envelope in transformers.envelopes:
            await envelope.refresh()
            self._asking.append(self._supervisor.run(f"keys of {envelope.name}", envelope.keep_fresh))


async def _end(transformers: Transformers, asking: list[Supervised]) -> None:
    for each in asking:
        await each.stop()
    for envelope in transformers.envelopes:
        await envelope.close()
