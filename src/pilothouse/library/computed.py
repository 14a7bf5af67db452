"""Resources without storage: objects that functions make when somebody asks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.apiextensions.serving.additions import Conversion, StoreAt
from pilothouse.apis import types
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.expected import Expected
from pilothouse.endpoints.list_options import list_options
from pilothouse.endpoints.negotiation import NO_PROTOBUF, negotiate
from pilothouse.endpoints.output.objects import entry_response, list_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ShownScope
from pilothouse.library.main_server import Main
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.net.messages import Response
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.registry.store.listing import ListOptions
from pilothouse.storage.cacher import Entry


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody asks for."""

    ctx: Context
    main: Main | None
    """The main API server, where this one stands behind one."""

    @property
    def namespace(self) -> str:
        """The namespace asked for; empty for all, and for kinds without namespaces."""
        return self.ctx.namespace


List = Callable[[Query], Iterable[Object] | Awaitable[Iterable[Object]]]
Get = Callable[[Query, str], Object | Awaitable[Object | None] | None]
_NO_REVISION: Final = 0
"""What is computed has no history: lists say so, and nobody can watch."""


@dataclass(frozen=True, slots=True)
class Computed:
    """Where the objects of a kind come from, in its first version. Functions may be coroutines.

    ``list`` gives all objects of the query's namespace, or of all where that is empty; selectors are applied to what
    it gives. ``get`` gives one by its name, or None; without it the object is looked for in the list.
    """

    list: List
    get: Get | None = None

    def endpoint(
        self, version: str, convert: Conversion | None, columns: tuple[Column, ...], main: Main | None
    ) -> ComputedEndpoint:
        """What serves it; ``version`` is the one that objects come in."""
        return ComputedEndpoint(self, version, convert, columns, main)


@dataclass(frozen=True, slots=True)
class ComputedEndpoint:
    """Makes the endpoint of a computed resource at each version."""

    source: Computed
    version: str
    convert: Conversion | None
    columns: tuple[Column, ...]
    main: Main | None
    verbs: tuple[str, ...] = ("get", "list")

    def kind(self, resource: Resource) -> GroupVersionKind:
        """The resource's own."""
        return resource.gvk

    def make(self, resource: Resource, subresource: str, store: StoreAt, admission: Admission | None) -> Endpoint:
        """The endpoint."""
        struct = types.struct("meta.v1.PartialObjectMetadata")
        return ComputedScope(
            resource=resource,
            subresource="",
            kind=resource.gvk,
            expected=Expected(resource.gvk, struct, "unstructured", NO_PROTOBUF),
            verbs={"get": _get, "list": _list},
            formats=NO_PROTOBUF,
            strategy=Strategy(),
            keeps_type=True,
            columns=self.columns,
            source=self.source,
            convert=self._convert_to(resource.version),
            main=self.main,
        )

    def _convert_to(self, version: str) -> Callable[[Object], Object]:
        convert = self.convert
        if convert is None or version == self.version:
            return lambda obj: obj
        return lambda obj: {**convert(dict(obj), self.version, version), "metadata": obj["metadata"]}


@dataclass(slots=True, kw_only=True)
class ComputedScope(ShownScope):
    """A computed resource at one version."""

    source: Computed
    convert: Callable[[Object], Object]
    main: Main | None

    def query(self, request: APIRequest) -> Query:
        """What the request asks for."""
        return Query(self.context(request), self.main)

    def entry(self, obj: Object) -> Entry:
        """An object as what is stored would be shown."""
        codec = ObjectCodec(self.kind.kind, self.api_version, None, keeps_type=True)
        head = {"apiVersion": self.api_version, "kind": self.kind.kind}
        shown = {**self.convert(obj), **head}
        metadata = shown["metadata"]
        labels = metadata.get("labels") or {}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        fields = {"metadata.name": name, "metadata.namespace": namespace}
        return Entry(f"{namespace}/{name}", codec.encode(shown), _NO_REVISION, namespace, name, labels, fields)


async def _settle(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


async def _get(scope: ComputedScope, request: APIRequest) -> Response:
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    query, name = scope.query(request), request.info.name
    if scope.source.get is not None:
        found = await _settle(scope.source.get(query, name))
    else:
        listed = await _settle(scope.source.list(query))
        found = next((each for each in listed if each["metadata"]["name"] == name), None)
    if found is None:
        raise errors.not_found(scope.resource.group_resource, name)
    return await entry_response(scope, request, media, scope.entry(found))


async def _list(scope: ComputedScope, request: APIRequest) -> Response:
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options, _ = await list_options(scope, request)
    entries = [scope.entry(each) for each in await _settle(scope.source.list(scope.query(request)))]
    chosen = [entry for entry in entries if _is_selected(entry, options)]
    chosen.sort(key=lambda entry: (entry.namespace, entry.name))
    return await list_response(scope, request, media, chosen, _NO_REVISION)


def _is_selected(entry: Entry, options: ListOptions) -> bool:
    by_label = options.labels is None or options.labels.matches(entry.labels)
    return by_label and (options.fields is None or options.fields.matches(entry.fields))
