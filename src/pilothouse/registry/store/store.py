"""One store per stored resource: reads from the cache, writes through it, under the resource's strategy.

Reads give cached entries and never decode. Writes decode the stored object, let ``rest`` and the strategy work on it, and
are optimistic: a write that meets a newer revision is tried again when the client did not insist on a version. Whatever a
write returns is already in the cache, so a client reads its own writes.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Object, Strategy
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.names import generate_name
from pilothouse.registry.rest.before_create import before_create
from pilothouse.registry.rest.before_update import before_update
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.versions import parse_version, too_large_version
from pilothouse.storage.backends.contract import Conflict, FutureRevision, KeyExists
from pilothouse.storage.cacher import Entry, ResourceCache

CONFLICT: Final = "the object has been modified; please apply your changes to the latest version and try again"
_NAME_ATTEMPTS: Final = 8
_WAIT_SECONDS: Final = 3.0

Admit = Callable[[Object, Object | None], Awaitable[None]]
"""Validating admission: (object, old object) → returns, or raises the refusal."""
Change = Callable[[Object | None], Awaitable[Object]]
"""Makes the wanted object from the stored one (None when there is none yet). May be called again after a conflict."""


class Store:
    """All objects of one resource."""

    def __init__(
        self,
        resource: Resource,
        strategy: Strategy,
        cache: ResourceCache,
        codec: ObjectCodec,
        root: str,
        ttl_seconds: int | None = None,
    ) -> None:
        self.resource = resource
        self.strategy = strategy
        self.cache = cache
        self.codec = codec
        self.prefix = f"{root}/{resource.key}/"
        self._ttl = ttl_seconds
        self._random = random.SystemRandom()

    # Reading

    def key(self, namespace: str, name: str) -> str:
        """Where an object is kept."""
        return f"{self.prefix}{namespace}/{name}" if self.resource.namespaced else self.prefix + name

    async def get(self, namespace: str, name: str, version: str = "") -> Entry:
        """The entry, at least as new as ``version`` says. Raises the 404 Status."""
        cache = self.cache
        if not cache.ready:
            await cache.wait_ready()
        if version:
            await self.wait_for(version)
        else:
            await cache.wait_fresh()
        entry = cache.get(self.key(namespace, name))
        if entry is None:
            raise errors.not_found(self.resource.group_resource, name)
        return entry

    async def wait_for(self, version: str) -> None:
        """Wait until the cache has reached a resourceVersion; 504 when that takes too long, 500 when it is no number."""
        try:
            wanted = parse_version(version)
        except ValueError as error:
            raise errors.generic(_bad_version(version, error)) from None
        if wanted:
            try:
                await self.cache.wait_for(wanted, _WAIT_SECONDS)
            except FutureRevision as late:
                raise too_large_version(wanted, late.current) from None

    def decode(self, entry: Entry) -> Object:
        """A fresh object of the entry; the caller may change it."""
        obj: Object = orjson.loads(entry.data)
        return obj

    # Creating

    async def create(self, ctx: Context, obj: Object, admit: Admit | None = None) -> Entry:
        """Store a new object. Raises 409 when it exists, 422 when it is invalid."""
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise errors.generic("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            return await self._create_named(ctx, obj, admit)
        await self._prepare_create(ctx, obj, admit)
        try:
            return await self._write_new(ctx, obj)
        except KeyExists:
            raise errors.already_exists(self.resource.group_resource, metadata["name"]) from None

    async def _create_named(self, ctx: Context, obj: Object, admit: Admit | None) -> Entry:
        """Find a free name. The object is checked once: names that differ in a suffix are equally valid."""
        metadata = obj["metadata"]
        for attempt in range(_NAME_ATTEMPTS):
            metadata["name"] = generate_name(metadata["generateName"], self._random)
            if attempt == 0:
                await self._prepare_create(ctx, obj, admit)
            try:
                return await self._write_new(ctx, obj)
            except KeyExists:
                continue
        raise errors.generate_name_conflict(self.resource.group_resource, metadata["name"], 1)

    async def _prepare_create(self, ctx: Context, obj: Object, admit: Admit | None) -> None:
        before_create(self.resource, self.strategy, ctx, obj)
        if admit is not None:
            await admit(obj, None)

    async def _write_new(self, ctx: Context, obj: Object) -> Entry:
        metadata = obj["metadata"]
        key = self.key(metadata.get("namespace", ""), metadata["name"])
        data = self.codec.encode(obj)
        if ctx.dry_run:
            if self.cache.get(key) is not None:
                raise KeyExists(key, 0)
            return self._unstored(key, obj, data)
        return await self.cache.create(
            key, self.codec.to_stored(data), self._ttl, lambda revision: self.codec.entry_of(key, obj, data, revision)
        )

    def _unstored(self, key: str, obj: Object, data: bytes) -> Entry:
        """What a dry run answers with: the object as it would be, without a version of its own."""
        entry = self.codec.entry_of(key, obj, data, 0)
        entry.data = data
        return entry

    # Updating

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Change,
        admit: Admit | None = None,
        *,
        strategy: Strategy | None = None,
        create: bool | None = None,
        admit_create: Admit | None = None,
    ) -> tuple[Entry, bool]:
        """Change an object; answers (entry, whether it was created).

        ``change`` gives the wanted object; its resourceVersion, where set, must be the stored one. ``create`` says whether a
        missing object may be created, the strategy's choice when not given.
        """
        strategy = strategy or self.strategy
        key = self.key(ctx.namespace, name)
        if not self.cache.ready:
            await self.cache.wait_ready()
        await self.cache.wait_fresh()
        while True:
            entry = self.cache.get(key)
            if entry is None:
                if not (strategy.allow_create_on_update if create is None else create):
                    raise errors.not_found(self.resource.group_resource, name)
                obj = await change(None)
                obj["metadata"].pop("resourceVersion", None)
                return await self.create(ctx, obj, admit_create), True
            old = self.decode(entry)
            obj = await change(old)
            insisted = self._check_version(strategy, obj, entry, name)
            before_update(self.resource, strategy, ctx, obj, old)
            if admit is not None:
                await admit(obj, old)
            try:
                return await self._replace(ctx, key, obj, old, entry), False
            except Conflict as conflict:
                if insisted or conflict.current is None:
                    raise self._lost_race(conflict, name) from None

    def _lost_race(self, conflict: Conflict, name: str) -> errors.StatusError:
        if conflict.current is None:
            return errors.not_found(self.resource.group_resource, name)
        return errors.conflict(self.resource.group_resource, name, CONFLICT)

    def _check_version(self, strategy: Strategy, obj: Object, entry: Entry, name: str) -> bool:
        """Whether the client insisted on a version; 409 when that is not the stored one."""
        metadata = obj["metadata"]
        try:
            version = parse_version(metadata.get("resourceVersion", ""))
        except ValueError as error:
            raise errors.generic(str(error)) from None
        if version == 0:
            if not strategy.allow_unconditional_update:
                errs = [invalid(Path("metadata", "resourceVersion"), 0, "must be specified for an update")]
                raise errors.invalid(GroupKind(self.resource.group, self.resource.name), name, errs)
            metadata["resourceVersion"] = str(entry.revision)
            return False
        if version != entry.revision:
            raise errors.conflict(self.resource.group_resource, name, CONFLICT)
        return True

    async def _replace(self, ctx: Context, key: str, obj: Object, old: Object, entry: Entry) -> Entry:
        """Write the changed object, unless nothing changed; remove it when its last finalizer went."""
        if _is_finished(obj["metadata"]) and not self.strategy.is_held(obj):
            if not ctx.dry_run:
                await self.cache.delete(key, entry.revision)
            return self.codec.entry_of(key, obj, self.codec.encode(obj), entry.revision)
        if same_object(obj, old):
            return entry
        data = self.codec.encode(obj)
        if ctx.dry_run:
            return self.codec.entry_of(key, obj, data, entry.revision)
        return await self.cache.update(
            key,
            self.codec.to_stored(data),
            entry.revision,
            self._ttl,
            lambda revision: self.codec.entry_of(key, obj, data, revision),
        )


def same_object(obj: Object, old: Object) -> bool:
    """Whether storing ``obj`` would change nothing."""
    if obj["metadata"] != old["metadata"]:
        return False
    return all(obj.get(key) == old.get(key) for key in {*obj, *old} if key not in ("metadata", "kind", "apiVersion"))


def _is_finished(metadata: dict[str, Any]) -> bool:
    """A deleted object whose finalizers are all gone and whose time is up."""
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _bad_version(version: str, error: ValueError) -> str:
    return f'resourceVersion: Invalid value: "{version}": {error}'
