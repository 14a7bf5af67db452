"""Reading other objects while judging one: straight from the cache, each state decoded at most once.

What is handed out is shared by all requests: never change it. ``get`` and ``list`` are synchronous once ``ready`` has
been awaited; a plug-in that finds nothing may ``refresh`` first, which matters only when several processes share a
store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from pilothouse.machinery.objects import Object
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry, ResourceCache

T = TypeVar("T")
_MOST_FOUND: Final = 10_000
_FROM_STORE: Final = frozenset({"store", "_cache", "_shared", "_key", "_prefix"})


class Objects:
    """The objects of one resource."""

    __slots__ = (
        "_cache",
        "_counted_at",
        "_found",
        "_key",
        "_make",
        "_memo",
        "_none",
        "_prefix",
        "_revision",
        "_shared",
        "store",
    )  # fmt: skip

    store: Store
    _cache: ResourceCache
    _shared: Callable[[Entry], Object]
    _key: Callable[[str, str], str]
    _prefix: str

    def __init__(self, store: Store | Callable[[], Store]) -> None:
        """``store``, or how it is made when something is first asked for."""
        if isinstance(store, Store):
            self._bind(store)
        else:
            self._make = store
        self._memo: dict[object, tuple[int, Any]] = {}
        self._found: dict[tuple[str, str], Object] = {}
        """What ``get`` has found at ``_revision``."""
        self._revision = -1
        self._none, self._counted_at = False, -1
        """Whether there was nothing at a revision."""

    def __getattr__(self, name: str) -> Any:
        """Only what is not there yet is asked for here: the store, and what is taken from it."""
        if name not in _FROM_STORE:
            raise AttributeError(name)
        self._bind(self._make())
        return getattr(self, name)

    def _bind(self, store: Store) -> None:
        self.store = store
        self._cache, self._shared, self._key, self._prefix = store.cache, store.shared, store.key, store.prefix

    @property
    def cache(self) -> ResourceCache:
        """What they are read from."""
        return self._cache

    @property
    def is_empty(self) -> bool:
        """Whether there are none for sure; False while the cache is not loaded."""
        cache = self._cache
        if self._counted_at != cache.changed_revision or not cache.ready:
            if not cache.ready:
                return False
            self._counted_at, self._none = cache.changed_revision, not len(cache)
        return self._none

    @property
    def is_loaded(self) -> bool:
        """Whether ``ready`` would not wait."""
        return self._cache.ready

    @property
    def revision(self) -> int:
        """Of the last change to any of them."""
        return self._cache.changed_revision

    async def ready(self) -> None:
        """Wait until the cache is loaded."""
        if not self._cache.ready:
            await self._cache.wait_ready()

    async def refresh(self) -> None:
        """Wait until what others have written is visible; returns at once in a single process."""
        await self._cache.wait_fresh()

    def entry(self, namespace: str, name: str) -> Entry | None:
        """The cached entry of an object."""
        return self._cache.get(self._key(namespace, name))

    def get(self, namespace: str, name: str) -> Object | None:
        """An object, shared."""
        found = self._found
        if self._revision != self._cache.changed_revision or len(found) > _MOST_FOUND:
            found.clear()
            self._revision = self._cache.changed_revision
        obj = found.get((namespace, name))
        if obj is None:
            entry = self._cache.get(self._key(namespace, name))
            if entry is None:
                return None
            obj = found[namespace, name] = self.decoded(entry)
        return obj

    async def find(self, namespace: str, name: str) -> Object | None:
        """An object, shared, asking the store as a last resort."""
        if not self._cache.ready:
            await self._cache.wait_ready()
        found = self.get(namespace, name)
        if found is None:
            await self._cache.wait_fresh()
            found = self.get(namespace, name)
        return found

    def entries(self, namespace: str = "") -> list[Entry]:
        """All entries, or those of a namespace."""
        if not len(self._cache):
            return []
        return self._cache.entries(f"{self._prefix}{namespace}/" if namespace else self._prefix)

    async def read(self, entries: list[Entry]) -> list[Entry]:
        """To be waited for before many entries of a large resource are decoded."""
        return await self._cache.read(entries)

    def list(self, namespace: str = "") -> list[Object]:
        """All objects, or those of a namespace, in the order of their keys; shared."""
        return [self.decoded(entry) for entry in self.entries(namespace)]

    def decoded(self, entry: Entry) -> Object:
        """The object of an entry, shared."""
        return self._shared(entry)

    @staticmethod
    def derived(entry: Entry, name: object, make: Callable[[Entry], T]) -> T:
        """Something made from an entry, once, and kept with it."""
        forms = entry.forms
        if forms is None:
            forms = entry.forms = {}
        elif name in forms:
            return cast("T", forms[name])
        made = forms[name] = make(entry)
        return made

    def remembered(self, name: object, make: Callable[[], T]) -> T:
        """Something made from all objects, again only after one of them changed."""
        revision = self._cache.changed_revision
        known = self._memo.get(name)
        if known is not None and known[0] == revision:
            return cast("T", known[1])
        made = make()
        self._memo[name] = (revision, made)
        return made
