"""Where an informer gets its objects: a store, and how its entries read in the version that was asked for.

Built-in resources always have a source. Custom ones have one while their definition is served in that version, and get
another when the definition changes; so a source is looked up again whenever a watch has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pilothouse.apis.conversion import converters_for
from pilothouse.apis.resources import table
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import large_json
from pilothouse.machinery.gvk import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry


@dataclass(frozen=True, slots=True)
class Source:
    """A store, the kind its objects are shown as, and what makes objects of entries."""

    store: Store
    kind: GroupVersionKind
    read: Callable[[Entry], Object]
    """The object of an entry, which may be kept with it, so that all who keep it share one."""
    read_passing: Callable[[Entry, frozenset[str] | None], Object]
    """The same, with nothing kept, and, if paths are given, perhaps with nothing but the fields there."""
    prepare: Callable[[Sequence[Entry]], Awaitable[None]] | None = None
    """Waited for before entries are read (conversion by webhook)."""
    shows_stored: bool = False
    """Whether objects are shown as they are stored, so that one read for an entry will do."""

    def object_of(self, entry: Entry) -> Object:
        """The object with its kind and apiVersion, as a client would get it."""
        return self.typed(self.read(entry))

    def passing_object_of(self, entry: Entry, fields: frozenset[str] | None = None) -> Object:
        """The same for whoever does not keep it, and perhaps needs nothing but some fields of it."""
        return self.typed(self.read_passing(entry, fields))

    def typed(self, obj: Object) -> Object:
        """An object that was read from the store, with its kind and apiVersion."""
        return {"kind": self.kind.kind, "apiVersion": str(self.kind.group_version), **obj}


FindSource = Callable[[GroupVersionResource], Source | None]
"""The source of a resource; None while it is not served."""


def built_in_source(storage: StorageFactory, gvr: GroupVersionResource) -> Source | None:
    """The source of a resource of the table."""
    version = table().get(gvr.group_version)
    rows = () if version is None else version.resources
    row = next((row for row in rows if row.name == gvr.resource and row.is_stored), None)
    if row is None:
        return None
    store = storage.store_for(row)
    _, from_hub = converters_for(row)

    if from_hub is None:
        return Source(store, row.gvk, store.shared, store.passing, shows_stored=True)

    def read(entry: Entry) -> Object:
        return from_hub(store.decode(entry))

    return Source(store, row.gvk, read, lambda entry, fields: read(entry))


def scope_source(scope: ResourceScope) -> Source:
    """The source of what an endpoint serves; for custom resources."""
    render = scope.render

    def read(entry: Entry) -> Object:
        obj: Object = large_json.loads(entry.data if render is None else render(entry))
        return obj

    return Source(scope.store, scope.kind, read, lambda entry, fields: read(entry), scope.prepare)
