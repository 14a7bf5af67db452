"""The stored objects that tokens refer to: reading them, and noting on secrets when their tokens were last used."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from pilothouse.apis.strategy import Context
from pilothouse.authn.service_account import LAST_USED_LABEL, last_used_label
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.contract import StorageError

logger = logging.getLogger(__name__)


class StoredObjects:
    """Reads the objects that tokens refer to from the stores."""

    def __init__(self, storage: StorageFactory) -> None:
        self._storage = storage

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The object, None if there is none."""
        if not name or "/" in name or "/" in namespace:
            return None
        store = self._storage.store("", "v1", resource)
        try:
            return store.decode(await store.get(namespace, name))
        except errors.StatusError as error:
            if error.code == 404:
                return None
            raise


class LegacyTokenUse:
    """Labels the secrets of used tokens with the day, while the requests that used them go on."""

    def __init__(self, storage: StorageFactory, supervisor: Supervisor) -> None:
        self._storage, self._supervisor = storage, supervisor
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, secret: Mapping[str, Any]) -> None:
        """A token that lies in this secret was used now."""
        day = last_used_label(secret, time.time())
        if day:
            metadata = secret["metadata"]
            task = self._supervisor.spawn("token use", self._label(metadata["namespace"], metadata["name"], day))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait for labels that are being written."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _label(self, namespace: str, name: str, day: str) -> None:
        async def change(old: Object | None) -> Object:
            assert old is not None
            metadata = dict(old["metadata"])
            metadata["labels"] = {**(metadata.get("labels") or {}), LAST_USED_LABEL: day}
            return {**old, "metadata": metadata}

        store = self._storage.store("", "v1", "secrets")
        ctx = Context(user="system:apiserver", namespace=namespace, verb="patch", now=now())
        try:
            await store.update(ctx, name, change, create=False)
        except (errors.StatusError, StorageError) as error:
            logger.warning("cannot note the use of the token in secret %s/%s: %s", namespace, name, error)
