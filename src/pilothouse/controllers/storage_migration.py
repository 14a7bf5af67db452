"""Storage version migrations: every object of a resource is written once more, so that it is stored as is stored now.

Of several migrations of one resource the oldest runs and the others wait. It notes the resource version it begins at;
objects written since need nothing, and each of the others gets a patch without content.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.discovery import ServedResource, discover
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time, parse_time

logger = logging.getLogger(__name__)
_ACCOUNT: Final = "storage-version-migrator-controller"
_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_DISCOVERY_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 1.0
_TRANSIENT: Final = frozenset((408, 429, 500, 503, 504))


def start(context: ControllerContext) -> None:
    """Start the migrator."""
    StorageMigrations(context).controller.start(context.supervisor)


class StorageMigrations:
    """Runs migrations."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._migrations = context.informers.of("storagemigration.k8s.io", "v1", "storageversionmigrations")
        self._api = context.client(_ACCOUNT)
        self._client = self._api.of("storagemigration.k8s.io", "v1", "storageversionmigrations")
        self.controller: Controller[Key] = Controller(
            _ACCOUNT, self._reconcile, workers=5, wait_for=[self._migrations], clock=context.clock
        )
        self._migrations.add_handler(self._seen, lambda old, new: self._seen(new), self._seen, name=_ACCOUNT)

    def _seen(self, migration: Object) -> None:
        """One that ends lets the next of its resource begin."""
        for each in self._of_resource(migration):
            if not is_over(each):
                self.controller.queue.add(key_of(each))

    def _of_resource(self, migration: Object) -> list[Object]:
        found = [each for each in self._migrations.lister.list() if _resource(each) == _resource(migration)]
        return sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))

    async def _reconcile(self, key: Key) -> float | None:
        migration = self._migrations.lister.get(*key)
        if migration is None or is_over(migration):
            return None
        first = next((each for each in self._of_resource(migration) if not is_over(each)), migration)
        if key_of(first) != key:
            return None
        resource = await self._find(migration)
        if resource is None:
            age = self._clock.now().since(parse_time(migration["metadata"]["creationTimestamp"]))
            if age < _DISCOVERY_SECONDS:
                return _RETRY_SECONDS
            await self._fail(migration, "resource does not exist in discovery")
        elif not resource.verbs.issuperset(_VERBS):
            gvr = resource.gvr
            text = f"{gvr.group}/{gvr.version}, Resource={gvr.resource}"
            await self._fail(
                migration, f'resource "{text}" does not support discovery operations: [{" ".join(_VERBS)}]'
            )
        elif condition_of(migration, "Running") is None:
            await self._write(migration, {}, ("Running", "MigrationRunning", "The migration is running"))
        elif not (migration.get("status") or {}).get("resourceVersion"):
            listed = await self._objects(resource).list(limit=1)
            await self._write(migration, {"resourceVersion": listed["metadata"]["resourceVersion"]})
        else:
            await self._migrate(migration, resource)
        return None

    async def _find(self, migration: Object) -> ServedResource | None:
        group, name = _resource(migration)
        served = (await discover(self._api)).preferred
        return next((each for each in served if (each.gvr.group, each.gvr.resource) == (group, name)), None)

    def _objects(self, resource: ServedResource) -> Any:
        return self._api.of(resource.gvr.group, resource.gvr.version, resource.gvr.resource)

    async def _migrate(self, migration: Object, resource: ServedResource) -> None:
        objects, begun = self._objects(resource), int(migration["status"]["resourceVersion"])
        total = 0
        async for obj in objects.items():
            total += 1
            metadata = obj["metadata"]
            if int(metadata["resourceVersion"]) > begun:
                continue
            patch = {
                "apiVersion": str(resource.gvr.group_version),
                "kind": resource.kind,
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
            }
            try:
                await objects.patch(metadata.get("namespace") or "", metadata["name"], patch)
            except (errors.NotFound, errors.Conflict):
                continue  # gone, or written by somebody else, which is as good
            except errors.StatusError as error:
                if error.code in _TRANSIENT:
                    raise
                await self._fail(migration, error.message)
                return
        text = "The migration is running" + (f", {total} objects verified migrated" if total else "")
        await self._write(
            migration,
            {},
            ("Running", "MigrationRunning", text),
            ("Succeeded", "StorageVersionMigrationSucceeded", "Migration completed"),
        )

    async def _fail(self, migration: Object, why: str) -> None:
        text = f"migration encountered unhandled error: {why}"
        await self._write(migration, {}, ("Failed", "StorageVersionMigrationFailed", text))

    async def _write(self, migration: Object, fields: dict[str, str], *conditions: tuple[str, str, str]) -> None:
        changed = copy_of(migration)
        status = changed.setdefault("status", {})
        status |= fields
        listed = status.setdefault("conditions", [])
        for type, reason, message in conditions:
            known = next((each for each in listed if each["type"] == type), None)
            if known is None:
                known = {"type": type, "lastTransitionTime": format_time(self._clock.now())}
                listed.append(known)
            known |= {"status": "True", "reason": reason, "message": message}
        try:
            await self._client.update_status(changed)
        except errors.NotFound:
            return


def is_over(migration: Object) -> bool:
    """Whether a migration has succeeded or failed."""
    return any((condition_of(migration, type) or {}).get("status") == "True" for type in ("Succeeded", "Failed"))


def _resource(migration: Object) -> tuple[str, str]:
    resource = migration["spec"]["resource"]
    return resource.get("group") or "", resource.get("resource") or ""
