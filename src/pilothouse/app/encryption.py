"""From ``--encryption-provider-config`` to an encrypting backend, and its re-reading when the file changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilothouse.app.reloaded_file import ReloadedFile
from pilothouse.authn.metrics import ReloadMetrics
from pilothouse.storage.backends.contract import Backend
from pilothouse.storage.encryption.backend import EncryptedBackend
from pilothouse.storage.encryption.configuration import KMS, parse_configuration
from pilothouse.storage.encryption.kms import Envelope
from pilothouse.storage.encryption.kms_client import KMSClient
from pilothouse.storage.encryption.metrics import EncryptionMetrics
from pilothouse.storage.encryption.transformers import Transformers

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


class Encryption:
    """The encrypting backend and what keeps its keys fresh."""

    def __init__(self, options: ServerOptions, backend: Backend, metrics: EncryptionMetrics, server: str = "") -> None:
        flags = options.etcd
        self._metrics, self.reloads = metrics, ReloadMetrics("encryption", "encryption configuration", server)
        self._root, self._reload = flags.etcd_prefix, flags.encryption_provider_config_automatic_reload
        try:
            self._file = ReloadedFile(flags.encryption_provider_config, parse_configuration, self.reloads)
        except ValueError as error:
            raise ValueError(f"error while parsing file {flags.encryption_provider_config}: {error}") from None
        self.backend = EncryptedBackend(backend, self._make())
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Ask the key management services for their keys, and go on asking."""
        await self._begin(self.backend.transformers)

    async def poll(self) -> None:
        """Look whether the file changed, where that is wanted."""
        if not self._reload or not await asyncio.to_thread(self._file.poll):
            return
        made = self._make()
        old, tasks = self.backend.transformers, self._tasks
        self._tasks = []
        await self._begin(made)
        self.backend.transformers = made
        self._file.accepted()
        await _end(old, tasks)

    def fault(self) -> str:
        """What is wrong with the key management services; empty if nothing."""
        return "; ".join(envelope.error for envelope in self.backend.transformers.envelopes if envelope.error)

    @property
    def needs_check(self) -> bool:
        """Whether key management services are used, or may be once the file changes."""
        return self._reload or bool(self.backend.transformers.envelopes)

    async def close(self) -> None:
        """Stop asking."""
        tasks, self._tasks = self._tasks, []
        await _end(self.backend.transformers, tasks)

    def _make(self) -> Transformers:
        return Transformers(self._file.value, self._root, self._make_envelope, self._metrics)

    def _make_envelope(self, settings: KMS) -> Envelope:
        client = KMSClient(settings.endpoint, settings.timeout, settings.name, self._metrics)
        return Envelope(settings.name, client, metrics=self._metrics)

    async def _begin(self, transformers: Transformers) -> None:
        for envelope in transformers.envelopes:
            await envelope.refresh()
            self._tasks.append(asyncio.get_running_loop().create_task(envelope.keep_fresh()))


async def _end(transformers: Transformers, tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for envelope in transformers.envelopes:
        await envelope.close()
