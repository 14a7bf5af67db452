"""Making stores: one for each stored resource, shared by all versions it is served in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pilothouse.apis import types
from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import Resource, hub_row, table
from pilothouse.apis.strategies import has_own_rules, strategy_for
from pilothouse.apis.strategy import Strategy
from pilothouse.machinery.gvk import GroupResource, GroupVersion
from pilothouse.registry.rest.deletion import DEFAULT_DELETING, Deleting
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.reservations import Reservations
from pilothouse.registry.store.store import IsStale, Store
from pilothouse.registry.store.stored_form import BuiltInForm, MediaType
from pilothouse.storage.cacher import Cacher, ResourceCache

MakeReservations = Callable[["StorageFactory"], Reservations]
"""Makes what the store of a resource reserves things with, which may keep its own objects in other stores."""


class StorageFactory:
    """Gives every resource its store, made at the first asking."""

    def __init__(
        self,
        cacher: Cacher,
        root: str = "/registry",
        event_ttl: int | None = None,
        *,
        gates: frozenset[str] | None = None,
        is_stale: IsStale | None = None,
        reservations: Mapping[GroupResource, MakeReservations] | None = None,
        media: MediaType = MediaType.OWN_JSON,
        cacher_for: Callable[[GroupResource], Cacher] | None = None,
        deleting: Deleting = DEFAULT_DELETING,
        reads_newest: Callable[[GroupResource], bool] = lambda resource: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``cacher_for`` names the cacher of a resource where some are kept in another store than the rest.

        ``reads_newest`` tells of which resources nobody is to see an older state, whatever they ask for.
        """
        self.reads_newest = reads_newest
        self.deleting = deleting
        self.monotonic = monotonic
        """The clock by which stores count how long something has been so."""
        self.media = media
        """What new values are written as."""
        self._cacher, self._cacher_for = cacher, cacher_for
        self._root = root
        self._event_ttl = event_ttl
        self._stores: dict[str, Store] = {}
        self._make_reservations = reservations or {}
        self.is_stale = is_stale
        self.gates = default_gates() if gates is None else gates
        """The feature gates that are on."""

    def store_for(self, resource: Resource) -> Store:
        """The store of a resource, whichever version asks for it.

        A resource that another group serves too (events), or a legacy version with rules of its own, has a store for
        each, over the same objects: their rules and messages differ.
        """
        apart = resource.group != resource.hub.group or (resource.legacy and has_own_rules(resource))
        name = f"{resource.key} of {resource.group_version}" if apart else resource.key
        store = self._stores.get(name)
        if store is None:
            hub = hub_row(resource)
            store = self._share(resource, self.store_for(hub)) if apart else self._make(hub)
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
        strategy = strategy_for(resource, self.gates, self.namespace_labels)
        named = replace(kept.resource, group=resource.group) if resource.legacy else resource
        return self._finish(named, strategy, kept.cache, kept.codec)

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
        strategy = strategy_for(resource, self.gates, self.namespace_labels)
        codec = self._codec(resource, strategy)
        cacher = self._cacher if self._cacher_for is None else self._cacher_for(resource.group_resource)
        cache = cacher.resource(f"{self._root}/{resource.key}/", codec)
        return self._finish(resource, strategy, cache, codec)

    def codec(self, group: str, version: str, name: str) -> ObjectCodec:
        """The codec for objects shaped like a resource's that are kept elsewhere: leases of servers."""
        resource = hub_row(find_resource(GroupVersion(group, version), name))
        return self._codec(resource, strategy_for(resource, self.gates, self.namespace_labels))

    def _codec(self, resource: Resource, strategy: Strategy) -> ObjectCodec:
        return ObjectCodec(
            resource.kind,
            str(resource.group_version),
            strategy.fields if strategy.field_labels else None,
            struct=types.struct(resource.type_name),
            form=BuiltInForm(resource, strategy.default, self.media),
            writes_form=self.media is not MediaType.OWN_JSON,
            field_sources=strategy.field_sources,
            hidden=strategy.hidden,
        )

    def _finish(self, resource: Resource, strategy: Strategy, cache: ResourceCache, codec: ObjectCodec) -> Store:
        reserve = self._make_reservations.get(resource.group_resource)
        return Store(
            resource,
            strategy,
            cache,
            codec,
            self._root,
            ttl_seconds=self._event_ttl if resource.name == "events" else None,
            gates=self.gates,
            is_stale=self.is_stale,
            deleting=self.deleting,
            reads_newest=self.reads_newest(resource.group_resource),
            reservations=None if reserve is None else reserve(self),
        )


def find_resource(gv: GroupVersion, name: str) -> Resource:
    """A row of the table."""
    return next(resource for resource in table()[gv].resources if resource.name == name)
