"""Making endpoints: of what is computed, and of what works on stored objects without showing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pilothouse.apis import types
from pilothouse.apis.deprecations import deprecation_of
from pilothouse.apis.resources import Resource, Subresource, package_of
from pilothouse.apis.strategy import Column, Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.expected import Expected
from pilothouse.endpoints.negotiation import ALL_TRANSFORMS, METADATA_ALONE
from pilothouse.endpoints.scope import Endpoint, EndpointVerb, ResourceScope, Verb
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.registry.store.store import Store

StoreOf = Callable[[str, str], Store]
"""The store of a group's resource."""
Maker = Callable[[Resource, Subresource | None, StoreOf, Admission | None], Endpoint]


def plain_endpoint(
    resource: Resource, sub: Subresource | None, verbs: Mapping[str, EndpointVerb], admission: Admission | None
) -> Endpoint:
    """An endpoint without a store."""
    return Endpoint(
        resource=resource,
        subresource="" if sub is None else sub.name,
        kind=resource.gvk if sub is None else sub.kind,
        expected=expected_kind(resource, sub),
        verbs=verbs,
        transforms=METADATA_ALONE,
        deprecation=deprecation_of(resource, sub),
        admission=admission,
    )


def working_endpoint(
    resource: Resource,
    sub: Subresource | None,
    store: Store,
    verbs: Mapping[str, Verb],
    *,
    admission: Admission | None,
    expected: Expected | None = None,
    takes_path: bool = False,
    strategy: Strategy | None = None,
    columns: tuple[Column, ...] = (),
    tracks_fields: bool = False,
) -> ResourceScope:
    """An endpoint that takes one kind and works on stored objects of another; their strategy is its own by default.

    Without columns it has no tables. With ``tracks_fields`` admission is shown who gave which field of what was sent.
    """
    kind = resource.gvk if sub is None else sub.kind
    subresource = "" if sub is None else sub.name
    expected = expected or expected_kind(resource, sub)
    return ResourceScope(
        resource=resource,
        subresource=subresource,
        kind=kind,
        expected=expected,
        verbs=verbs,
        transforms=ALL_TRANSFORMS if columns else METADATA_ALONE,
        takes_path=takes_path,
        deprecation=deprecation_of(resource, sub),
        admission=admission,
        store=store,
        strategy=strategy or store.strategy,
        columns=columns,
        make_field_manager=partial(FieldManager, expected.struct, kind, subresource=subresource)
        if tracks_fields
        else None,
    )


def expected_kind(resource: Resource, sub: Subresource | None) -> Expected:
    """The kind that an endpoint takes."""
    kind = resource.gvk if sub is None else sub.kind
    package = resource.package if kind.group == resource.group else package_of(kind.group)
    return Expected(kind, types.find_kind(kind) or types.struct(resource.type_name), package)
