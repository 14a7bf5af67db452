"""Installing: rows of the resource table become endpoints, given something that keeps their objects.

Where a row's objects are kept, its endpoint and those of same-object subresources are made of the verbs and its
strategy. All others bring their own verbs (``endpoints/subresources``, or ``own_verbs`` from the layers above). Every
row has an endpoint, so that methods it does not take are told apart from paths that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for, own_defaults, unowned_fields
from pilothouse.apis.deprecations import deprecation_of
from pilothouse.apis.resources import Resource, Subresource, Version, hub_row, table, versions_of
from pilothouse.apis.strategies import import_rules
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.expected import Expected
from pilothouse.endpoints.installed import InstalledVersion, Scopes, Unmade
from pilothouse.endpoints.negotiation import ALL_TRANSFORMS, METADATA_ALONE
from pilothouse.endpoints.scope import Endpoint, EndpointVerb, ResourceScope, Verb
from pilothouse.endpoints.subresources import makers_with
from pilothouse.endpoints.subresources.endpoints import Maker, plain_endpoint
from pilothouse.endpoints.subresources.links import Links
from pilothouse.endpoints.verbs.create import create
from pilothouse.endpoints.verbs.delete import delete
from pilothouse.endpoints.verbs.delete_collection import delete_collection
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.list import list_
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.endpoints.verbs.watch import watch
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.field_manager.tracking import Convert
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.structured.field_sets import FieldSet, from_paths
from pilothouse.machinery.structured.ownership import MissingVersion, Unconvertible
from pilothouse.registry.store.sizing import is_kept_as_json
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
Served = frozenset[GroupVersion] | None
"""The versions that are served; None for all there are."""


OwnVerbs = Mapping[tuple[str, str, str], Mapping[str, EndpointVerb]]
"""Verbs by group, resource and subresource."""


def install_version(
    version: Version,
    store_for: StoreFor,
    own_verbs: OwnVerbs | None = None,
    admission: Admission | None = None,
    served: Served = None,
    links: Links | None = None,
) -> InstalledVersion:
    """All endpoints of a version, which stands among the versions served. ``links`` lead to nodes and pods."""
    makers = makers_with(links or Links())

    def make(resource: Resource) -> Scopes:
        scopes: Scopes = {}
        store: Store | None = None
        if not resource.verbs:
            pass  # only its subresources are served
        elif resource.is_stored:
            store = store_for(resource)
            scopes[resource.name, ""] = make_scope(resource, None, store, store.strategy, admission, served)
        else:
            scopes[resource.name, ""] = make_endpoint(resource, None, store_for, own_verbs or {}, makers, admission)
        for sub in resource.subresources:
            if store is not None and sub.name in store.strategy.subresources:
                scope: Endpoint = make_scope(
                    resource, sub, store, store.strategy.subresource(sub.name), admission, served
                )
            else:
                scope = make_endpoint(resource, sub, store_for, own_verbs or {}, makers, admission)
            scopes[resource.name, sub.name] = scope
        return scopes

    unmade = {each.name: Unmade(partial(import_rules, each), partial(make, each)) for each in version.resources}
    return InstalledVersion(version, {}, unmade)


def make_endpoint(
    resource: Resource,
    sub: Subresource | None,
    store_for: StoreFor,
    own_verbs: OwnVerbs,
    makers: Mapping[tuple[str, str, str], Maker],
    admission: Admission | None,
) -> Endpoint:
    """The endpoint of what is not a stored object."""
    key = (resource.group, resource.name, "" if sub is None else sub.name)
    maker = makers.get(key)
    if maker is not None:
        return maker(resource, sub, lambda group, name: store_for(_stored_row(group, name)), admission)
    return plain_endpoint(resource, sub, own_verbs.get(key, {}), admission)


def _stored_row(group: str, name: str) -> Resource:
    rows = (row for gv, version in table().items() if gv.group == group for row in version.resources)
    return next(row for row in rows if row.name == name)


_WITHOUT_TABLE: Final = frozenset(
    {
        ("", "namespaces", "finalize"),
        ("", "pods", "ephemeralcontainers"),
        ("", "pods", "resize"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "status"),
        ("apiregistration.k8s.io", "apiservices", "status"),
        ("certificates.k8s.io", "certificatesigningrequests", "approval"),
        ("resource.k8s.io", "devicetaintrules", "status"),
        ("resource.k8s.io", "resourceclaims", "status"),
        ("resource.k8s.io", "resourcepoolstatusrequests", "status"),
        ("scheduling.k8s.io", "compositepodgroups", "status"),
        ("scheduling.k8s.io", "podgroups", "status"),
    }
)
"""Subresources that show the object in full or its metadata, but never as a table."""


def make_scope(
    resource: Resource,
    sub: Subresource | None,
    store: Store,
    strategy: Strategy,
    admission: Admission | None,
    served: Served = None,
) -> ResourceScope:
    """The scope of a resource, or of a subresource that shows the same object."""
    struct = types.struct(resource.type_name)
    to_hub, from_hub = converters_for(resource)
    subresource = sub.name if sub is not None else ""
    package = hub_row(resource).package
    stored = sub is None and not resource.legacy and not is_kept_as_json(struct)
    verbs = sub.verbs if sub is not None else resource.verbs
    return ResourceScope(
        resource=resource,
        subresource=subresource,
        kind=resource.gvk,
        store=store,
        strategy=strategy,
        expected=Expected(resource.gvk, struct, package, stored=stored),
        verbs={verb: VERBS[verb] for verb in verbs},
        to_hub=to_hub,
        from_hub=from_hub,
        own_defaults=own_defaults(resource),
        transforms=METADATA_ALONE if (resource.group, resource.name, subresource) in _WITHOUT_TABLE else ALL_TRANSFORMS,
        columns=store.strategy.columns,
        deprecation=deprecation_of(resource),
        admission=admission,
        make_field_manager=lambda: make_field_manager(resource, subresource, strategy, served),
    )


def make_field_manager(resource: Resource, subresource: str, strategy: Strategy, served: Served = None) -> FieldManager:
    """What tracks ownership at an endpoint. Fields that the endpoint never keeps are never owned through it.

    What was written in a version that is not served is forgotten. So is what was written to an event on the other side:
    the legacy API knows no types of the groups, nor they its own.
    """
    near = (row for row in versions_of(resource) if bool(row.group) == bool(resource.group))
    rows = {str(row.group_version): row for row in near if served is None or row.group_version in served}
    dropped = strategy.reset_fields
    if not dropped and not subresource and any(sub.name == "status" for sub in resource.subresources):
        dropped = ("status",)
    reset = {version: _field_set(unowned_fields(row), dropped, subresource) for version, row in rows.items()}
    struct = types.struct(resource.type_name)
    convert = _between(rows) if len(rows) > 1 else None
    return FieldManager(struct, resource.gvk, subresource=subresource, reset_fields=reset, convert=convert)


def _between(rows: Mapping[str, Resource]) -> Convert:
    """Shows an object in the version that another of its managers wrote."""

    def convert(obj: dict[str, Any], old: str, new: str) -> tuple[Struct, dict[str, Any]]:
        if new not in rows:
            raise MissingVersion(new)
        to_hub, from_hub = converters_for(rows[old])[0], converters_for(rows[new])[1]
        try:
            shown = decode(types.struct(rows[old].type_name), obj)[0]
        except DecodeError as error:
            raise Unconvertible(str(error)) from None
        for step in filter(None, (to_hub, from_hub)):
            shown = step(shown)
        return types.struct(rows[new].type_name), {**shown, "kind": rows[new].kind, "apiVersion": new}

    return convert


def _field_set(own: tuple[str, ...] | None, usual: tuple[str, ...], subresource: str) -> FieldSet:
    """What nobody owns: the usual fields, or those of a version of its own, which its subresources do own."""
    paths = usual if own is None else () if subresource else own
    return from_paths(*(_field_path(path) for path in paths))


def _field_path(dotted: str) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in dotted.split("."))
