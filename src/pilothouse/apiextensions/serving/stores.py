"""Stores of custom resources: one for each version, all over the definition's one cache.

Strategies, patches and admission see objects in the version of the request, as in kube-apiserver; what is written is in
the storage version. With a conversion webhook both ways are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pilothouse.apiextensions.serving.codec import CustomCodec
from pilothouse.apiextensions.serving.conversion import (
    ConversionFailed,
    Rendering,
    Versions,
    unreadable,
    unreadable_list,
)
from pilothouse.apiextensions.serving.initialization import Initialization
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.registry.rest.deletion import DEFAULT_DELETING, Deleting
from pilothouse.registry.store.store import Change, IsStale, Store, ValidatingAdmission, same_object
from pilothouse.storage.backends.contract import Foreseen
from pilothouse.storage.cacher import Entry, ResourceCache


class CustomStore(Store):
    """The objects of a definition as one version has them."""

    def __init__(
        self,
        resource: Resource,
        strategy: Strategy,
        cache: ResourceCache,
        codec: CustomCodec,
        root: str,
        versions: Versions,
        rendering: Rendering,
        served_since: int,
        is_stale: IsStale | None = None,
        deleting: Deleting = DEFAULT_DELETING,
        *,
        reads_newest: bool = False,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(
            resource,
            strategy,
            cache,
            codec,
            root,
            oldest_watch=served_since,
            is_stale=is_stale,
            converts=versions.converter is not None,
            deleting=deleting,
            reads_newest=reads_newest,
        )
        self._root = root
        self._versions = versions
        self._rendering = rendering
        self._stored_prefix = b'{"apiVersion":"%b",' % versions.storage_version.encode()
        self._initialization: Initialization | None = None
        self._clock = clock

    async def wait_initialized(self) -> None:
        state = self._initialization
        if not self.converts or (state is not None and state.done):
            return
        if not self.cache.ready:
            await self.cache.wait_ready()
        entries = self.cache.entries()
        if state is None:
            # Nothing was there to be converted when the definition came to be as it is.
            done = all(entry.revision > self.oldest_watch for entry in entries)
            state = self._initialization = Initialization(done=done, clock=self._clock)
            if done:
                return
        try:
            await self._rendering.prepare(entries)
        except ConversionFailed as error:
            why = unreadable_list(self.resource.group_resource, self._rendering.missing(entries), error).message
            message = f"storage is (re)initializing: failed to list <unspecified>: {why}"
            raise errors.too_many_requests(message, state.retry_after) from None
        state.succeed()

    def field_value(self, entry: Entry, name: str) -> str:
        """Where others convert objects, the stored version may have other fields than the one asked for."""
        if not self.converts or name.startswith("metadata."):
            return super().field_value(entry, name)
        form = f"{self._rendering.form} fields"
        found: Mapping[str, str] | None = None if (forms := entry.forms) is None else forms.get(form)
        if found is None:
            found = self.codec.selector_fields(self.decode(entry))
            entry.keep(form, found)
        return found.get(name, "")

    def decode(self, entry: Entry) -> Object:
        try:
            obj: Object = large_json.loads(self._rendering.render(entry))
        except ConversionFailed as error:
            raise unreadable(entry, self._root, error) from None
        return obj

    def weight(self, entry: Entry) -> int:
        """A converted object may be longer than the stored one."""
        return self._rendering.weight(entry) if self.converts else len(entry.data)

    async def prepare(self, entries: Sequence[Entry]) -> None:
        try:
            await self._rendering.prepare(entries)
        except ConversionFailed as error:
            raise unreadable(entries[0], self._root, error) from None

    async def prepare_list(self, entries: Sequence[Entry]) -> None:
        """Have the items of a list converted."""
        try:
            await self._rendering.prepare(entries)
        except ConversionFailed as error:
            if self._initialization is not None:
                self._initialization.fail()
            missing = self._rendering.missing(entries)
            raise unreadable_list(self.resource.group_resource, missing, error) from None

    async def prepare_change(self, entry: Entry) -> None:
        """What is to be changed is read by words of its own."""
        try:
            await self._rendering.prepare((entry,))
        except ConversionFailed as error:
            raise errors.generic(f"object not decodable revision={entry.revision}: {error}") from None

    def is_unchanged(self, obj: Object, old: Object, entry: Entry) -> bool:
        """An object in an older version, or of which this one shows less, is written anew even if nothing changed."""
        if not super().is_unchanged(obj, old, entry) or not entry.data.startswith(self._stored_prefix):
            return False
        if self._versions.converter is not None or obj["apiVersion"] == self._versions.storage_version:
            return True
        return same_object(self.decode(entry), large_json.loads(entry.data))

    async def stored_form(self, ctx: Context, obj: Object) -> Object:
        if obj["apiVersion"] == self._versions.storage_version:
            return obj
        copy: Object = await weighed(ctx.weight, lambda: large_json.loads(large_json.dumps(obj)))
        try:
            converted = await self._versions.convert([copy], self._versions.storage, ctx.weight)
        except ConversionFailed as error:
            raise errors.generic(str(error)) from None
        ctx.weight = max(ctx.weight, converted.weight)
        return converted.objects[0]

    async def get(self, namespace: str, name: str, version: str = "", foreseen: Foreseen | None = None) -> Entry:
        return await self._prepared(await super().get(namespace, name, version, foreseen))

    async def create(self, ctx: Context, obj: Object, validate: ValidatingAdmission | None = None) -> Entry:
        return await self._prepared(await super().create(ctx, obj, validate))

    async def update(self, ctx: Context, name: str, change: Change, *args: Any, **options: Any) -> tuple[Entry, bool]:
        entry, created = await super().update(ctx, name, change, *args, **options)
        return await self._prepared(entry), created

    async def _prepared(self, entry: Entry) -> Entry:
        """An entry that can be rendered."""
        if self.converts or self._rendering.missing((entry,)):
            await self.prepare((entry,))
        return entry
