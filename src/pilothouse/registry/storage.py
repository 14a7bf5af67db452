"""Making stores: one for each stored resource, shared by all versions it is served in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pilothouse.apis import types
from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Cacher, ResourceCache


class StorageFactory:
    """Gives every resource its store, made at the first asking."""

    def __init__(self, cacher: Cacher, root: str = "/registry", event_ttl: int | None = None) -> None:
        self._cacher = cacher
        self._root = root
        self._event_ttl = event_ttl
        self._stores: dict[str, Store] = {}
        self.is_stale: Callable[[str], Awaitable[bool]] | None = None
        """Tells whether a stored value should be written anew even if nothing changed; for stores made from now on."""
        self.gates: frozenset[str] = default_gates()
        """The feature gates that are on; for stores made from now on."""

    def store_for(self, resource: Resource) -> Store:
        """The store of a resource, whichever version asks for it.

        A resource that another group serves too (events) has a store for each, over the same objects: their rules and
        messages differ.
        """
        foreign = resource.group != resource.hub.group
        name = f"{resource.key} of {resource.group}" if foreign else resource.key
        store = self._stores.get(name)
        if store is None:
            hub = hub_resource(resource)
            store = self._share(resource, self.store_for(hub)) if foreign else self._make(hub)
            store.is_stale, store.gates = self.is_stale, self.gates
            store.strategy.labels_of = self.namespace_labels
            self._stores[name] = store
        return store

    def store(self, group: str, version: str, name: str) -> Store:
        """The store of a resource by its coordinates."""
        return self.store_for(find_resource(GroupVersion(group, version), name))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace, for strategies whose rules depend on them."""
        namespaces = self.store("", "v1", "namespaces")
        entry = namespaces.cache.get(namespaces.key("", name))
        if entry is None:
            return None
        labels: Mapping[str, str] = namespaces.decode(entry)["metadata"].get("labels") or {}
        return labels

    def _share(self, resource: Resource, kept: Store) -> Store:
        return Store(resource, strategy_for(resource, self.gates), kept.cache, kept.codec, self._root, self._event_ttl)

    @property
    def root(self) -> str:
        """The prefix of all keys."""
        return self._root

    def cache(self, key: str, codec: ObjectCodec) -> ResourceCache:
        """The cache of a resource that is not in the table, by its key below the root."""
        return self._cacher.resource(f"{self._root}/{key}/", codec)

    def drop(self, key: str) -> None:
        """Forget the cache of a resource; its watches end."""
        self._cacher.drop(f"{self._root}/{key}/")

    def _make(self, resource: Resource) -> Store:
        strategy = strategy_for(resource, self.gates)
        fields = strategy.fields if strategy.field_labels else None
        struct = types.struct(resource.type_name)
        codec = ObjectCodec(resource.kind, str(resource.group_version), fields, struct=struct)
        cache = self._cacher.resource(f"{self._root}/{resource.key}/", codec)
        ttl = self._event_ttl if resource.name == "events" else None
        return Store(resource, strategy, cache, codec, self._root, ttl)


def find_resource(gv: GroupVersion, name: str) -> Resource:
    """A row of the table."""
    return next(resource for resource in table()[gv].resources if resource.name == name)


def hub_resource(resource: Resource) -> Resource:
    """The row of the version that objects are kept in."""
    return resource if resource.hub == resource.group_version else find_resource(resource.hub, resource.name)
