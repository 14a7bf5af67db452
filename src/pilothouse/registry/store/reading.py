"""Reading what a store has: entries of the cache, as new as is asked for, and objects of them for those who need any.

Where others have a part in reading what is stored (conversion by webhook) there is something to wait for first: a
subclass says what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.addressing import check_looked_up, is_doubtful
from pilothouse.machinery.objects import Object
from pilothouse.machinery.spans import Span
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.versions import parse_version, too_large_version
from pilothouse.storage.backends.contract import Foreseen, FutureRevision
from pilothouse.storage.cacher import Entry, ResourceCache, UnreadEntry, field_value

_DECODED: Final = "decoded"
_WAIT_SECONDS: Final = 3.0


class StoreReader:
    """All objects of one resource, for those who read them."""

    def __init__(
        self,
        resource: Resource,
        cache: ResourceCache,
        codec: ObjectCodec,
        root: str,
        *,
        oldest_watch: int = 0,
        converts: bool = False,
        reads_newest: bool = False,
    ) -> None:
        self.resource = resource
        self.cache = cache
        self.codec = codec
        self.root = root
        self.prefix = f"{root}/{resource.key}/"
        self.oldest_watch = oldest_watch
        """The first revision that watches may start from: custom resources have no history from before."""
        self.converts = converts
        """Whether ``prepare`` and ``stored_form`` have something to wait for."""
        self.reads_newest = reads_newest
        """Whether every read is as new as the store, also of those who would take older ones."""

    # What is to be waited for where others convert objects

    def field_value(self, entry: Entry, name: str) -> str:
        """A selectable field's value, as this store's version has it."""
        return field_value(entry, name)

    async def prepare_list(self, entries: Sequence[Entry]) -> None:
        """The same as ``prepare`` for the items of a list, which has words of its own for what fails."""
        await self.prepare(entries)

    async def wait_initialized(self) -> None:
        """To be waited for before lists and watches are served, where others have a part in reading what is stored.

        Raises a Status while that fails.
        """

    async def prepare_change(self, entry: Entry) -> None:
        """The same as ``prepare`` for an entry that is to be changed."""
        await self.prepare((entry,))

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """To be waited for before entries are decoded, where others have a part in that (conversion by webhook)."""

    async def stored_form(self, ctx: Context, obj: Object) -> Object:
        """An object's form in storage, to be waited for likewise; the context hears how long it has become."""
        return obj

    def weight(self, entry: Entry) -> int:
        """How long an entry is that has been prepared, in bytes."""
        return len(entry.data)

    # Keys and entries

    def dry_key(self, namespace: str, name: str) -> str:
        """What dry runs call the place of an object: they do not reach storage, which has the root."""
        return self.key(namespace, name).removeprefix(self.root)

    def key(self, namespace: str, name: str) -> str:
        """Where an object is kept."""
        return f"{self.prefix}{namespace}/{name}" if self.resource.namespaced else self.prefix + name

    def key_of_named(self, namespace: str, name: str) -> str:
        """The same for a name in a path. Raises the 400 for one that nothing stored can have."""
        if is_doubtful(name):
            check_looked_up(name)
        return self.key(namespace, name)

    async def get(self, namespace: str, name: str, version: str = "", foreseen: Foreseen | None = None) -> Entry:
        """The entry, at least as new as ``version`` says. Raises the 404 Status.

        Without a version it is as new as the store, or as it was when ``foreseen`` was begun.
        """
        key, cache = self.key_of_named(namespace, name), self.cache
        if version:
            if not cache.ready:
                await cache.wait_ready()
            await self.wait_for(version)
            if self.reads_newest:
                await cache.wait_fresh()
        elif not cache.is_fresh():
            with Span("cacher.Get", {"type": self.resource.name}):
                await cache.wait_fresh(foreseen)
        entry = cache.get(key)
        if entry is None:
            raise errors.not_found(self.resource.group_resource, name)
        return entry

    async def wait_for(self, version: str) -> None:
        """Wait until the cache has reached a resourceVersion; 504 when that takes too long.

        No number is 500, and 400 where kube-apiserver has no cache.
        """
        try:
            wanted = parse_version(version)
        except ValueError as error:
            told = _bad_version(version, error)
            refused = errors.bad_request(f"invalid resource version: {told}")
            raise (refused if self.reads_newest else errors.generic(told)) from None
        if wanted:
            await self.reach(wanted)

    async def reach(self, revision: int) -> None:
        """Wait until the cache has reached a revision; 504 when that takes too long."""
        try:
            await self.cache.wait_for(revision, _WAIT_SECONDS)
        except FutureRevision as late:
            raise too_large_version(revision, late.current) from None

    def decode(self, entry: Entry) -> Object:
        """A fresh object of the entry; the caller may change it."""
        obj: Object = large_json.loads(entry.data)
        return obj

    async def read(self, entry: Entry) -> Object:
        """The same, made aside if it is long."""
        return await weighed(self.weight(entry), self.decode, entry)

    def glance(self, namespace: str, name: str) -> tuple[Entry, Object] | None:
        """An object as the cache has it, fresh, if that is short; it may be outdated."""
        entry = self.cache.get(self.key(namespace, name)) if self.cache.ready and not self.converts else None
        return None if entry is None or entry.size >= LONG else (entry, self.decode(entry))

    async def read_shared(self, entries: Sequence[Entry]) -> list[Object]:
        """What ``shared`` gives of each, made aside if what nobody has decoded yet is long."""
        unread = sum(len(entry.data) for entry in entries if entry.forms is None or _DECODED not in entry.forms)
        return await weighed(unread, lambda: [self.shared(entry) for entry in entries])

    def shared(self, entry: Entry) -> Object:
        """The object of the entry, decoded once for all who only read it: nobody may change it."""
        forms = entry.forms
        found: Object | None = None if forms is None else forms.get(_DECODED)
        if found is None:
            found = self.decode(entry)
            entry.keep(_DECODED, found)
        return found

    def passing(self, entry: Entry, wanted: frozenset[str] | None = None) -> Object:
        """The object of the entry for whoever only reads it and does not keep it: nothing is kept with the entry.

        Whoever needs some fields only may get no others, and these as they are stored, without defaults.
        """
        forms = entry.forms
        found: Object | None = None if forms is None else forms.get(_DECODED)
        if found is None and wanted is not None and type(entry) is UnreadEntry and (stored := entry.stored) is not None:
            found = self.codec.read_partly(stored, wanted)
        return self.decode(entry) if found is None else found

    async def _whole(self, entry: Entry) -> Object:
        """The object of the entry with what is stored and not shown; without it where the entry is outdated."""
        found = await self.cache.stored(entry.key)
        if found is None or found.revision != entry.revision:
            return await self.read(entry)
        obj = self.codec.whole(found.value)
        obj["metadata"]["resourceVersion"] = str(entry.revision)
        return obj


def _bad_version(version: str, error: ValueError) -> str:
    return f'resourceVersion: Invalid value: "{version}": {error}'
