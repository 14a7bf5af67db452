"""Installing: rows of the resource table become scopes, given something that keeps their objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.deprecations import deprecation_of
from pilothouse.apis.resources import Resource, Subresource, Version
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.input import Expected
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.scope import ResourceScope, Verb
from pilothouse.endpoints.verbs.create import create
from pilothouse.endpoints.verbs.delete import delete
from pilothouse.endpoints.verbs.delete_collection import delete_collection
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.list import list_
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.endpoints.verbs.watch import watch
from pilothouse.machinery.schema.decoding import decode
from pilothouse.registry.store.store import Store

VERBS: Mapping[str, Verb] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
StoreFor = Callable[[Resource], Store]


def install_version(version: Version, store_for: StoreFor) -> InstalledVersion:
    """All endpoints of a version whose objects are kept."""
    scopes: dict[tuple[str, str], ResourceScope] = {}
    for resource in version.resources:
        if not resource.is_stored:
            continue
        store = store_for(resource)
        scopes[resource.name, ""] = make_scope(resource, None, store, store.strategy)
        for sub in resource.subresources:
            strategy = store.strategy.subresources.get(sub.name)
            if strategy is not None:
                scopes[resource.name, sub.name] = make_scope(resource, sub, store, strategy())
    return InstalledVersion(version, scopes)


def make_scope(resource: Resource, sub: Subresource | None, store: Store, strategy: Strategy) -> ResourceScope:
    """The scope of a resource, or of a subresource that shows the same object."""
    struct = types.struct(resource.type_name)
    to_hub, from_hub = converters_for(resource)
    empty, _ = decode(struct, {})
    empty.pop("metadata", None)
    verbs = sub.verbs if sub is not None else resource.verbs
    return ResourceScope(
        resource=resource,
        subresource=sub.name if sub is not None else "",
        kind=resource.gvk,
        store=store,
        strategy=strategy,
        expected=Expected(resource.gvk, struct, resource.package),
        verbs={verb: VERBS[verb] for verb in verbs},
        to_hub=to_hub,
        from_hub=from_hub,
        columns=store.strategy.columns,
        deprecation=deprecation_of(resource),
        empty=empty,
    )
