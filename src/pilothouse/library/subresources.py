"""Subresources of one's own: functions of a stored object and of what the client sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pilothouse.apiextensions.serving.additions import Conversion, StoreAt
from pilothouse.apis import types
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.expected import Expected
from pilothouse.endpoints.input import parse_json, read_body
from pilothouse.endpoints.negotiation import NO_PROTOBUF, negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import Endpoint
from pilothouse.library.main_server import Main
from pilothouse.machinery import errors
from pilothouse.machinery.go_json import BeyondFloats
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.net.messages import Response

_WITH_BODY: Final = frozenset({"create", "update"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a subresource."""

    ctx: Context
    object: Object
    """The stored object, in the storage version."""
    body: Object
    """What the client sent; empty for a GET."""
    main: Main | None
    """The main API server, where this one stands behind one."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource that a coroutine answers: with an object, of the kind's own kind unless ``kind`` says otherwise.

    A refusal is a ``StatusError`` (``errors``). ``verbs`` are ``get``, ``create`` (POST), ``update`` (PUT), ``delete``.
    """

    answer: Callable[[Call], Awaitable[Object]]
    verbs: tuple[str, ...] = ("get",)
    kind: tuple[str, str, str] | None = None
    """Group, version and kind of what it takes and gives."""

    def endpoint(self, version: str, convert: Conversion | None, main: Main | None) -> SubresourceEndpoint:
        """What serves it; ``version`` is the one that objects are stored in."""
        return SubresourceEndpoint(self, version, convert, main)


@dataclass(frozen=True, slots=True)
class SubresourceEndpoint:
    """Makes the endpoint of a subresource at each version."""

    declared: Subresource
    version: str
    convert: Conversion | None
    main: Main | None

    @property
    def verbs(self) -> tuple[str, ...]:
        """As declared."""
        return self.declared.verbs

    def kind(self, resource: Resource) -> GroupVersionKind:
        """What it takes and gives."""
        return resource.gvk if self.declared.kind is None else GroupVersionKind(*self.declared.kind)

    def make(self, resource: Resource, subresource: str, store: StoreAt, admission: Admission | None) -> Endpoint:
        """The endpoint. There is nothing for admission to look at: no object is written here."""
        kind = self.kind(resource)

        async def serve(endpoint: Endpoint, request: APIRequest) -> Response:
            return await self._serve(endpoint, request, store)

        return Endpoint(
            resource=resource,
            subresource=subresource,
            kind=kind,
            expected=Expected(kind, types.struct("meta.v1.PartialObjectMetadata"), "unstructured", NO_PROTOBUF),
            verbs=dict.fromkeys(self.verbs, serve),
            formats=NO_PROTOBUF,
            admission=admission,
        )

    async def _serve(self, endpoint: Endpoint, request: APIRequest, store: StoreAt) -> Response:
        media = negotiate(request, endpoint.formats)
        kept = store()
        entry = await kept.get(request.info.namespace, request.info.name)
        obj = kept.decode(entry)
        if self.convert is not None and endpoint.resource.version != self.version:
            obj = {**self.convert(obj, endpoint.resource.version, self.version), "metadata": obj["metadata"]}
        body = await _read(request) if request.info.verb in _WITH_BODY else {}
        answer = await self.declared.answer(Call(endpoint.context(request), obj, body, self.main))
        head = {"kind": endpoint.kind.kind, "apiVersion": str(endpoint.kind.group_version)}
        return object_response(media, {**head, **answer}, 201 if request.info.verb == "create" else 200)


async def _read(request: APIRequest) -> Object:
    data = await read_body(request)
    try:
        value = await parse_json(data, errors.bad_request) if data else {}
    except BeyondFloats as error:
        raise errors.bad_request(str(error)) from None
    if not isinstance(value, dict):
        raise errors.bad_request("the body is not an object")
    return value
