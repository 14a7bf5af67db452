"""Everything a verb needs to know about the endpoint it serves, made once when the resource is installed.

A scope joins a row of the resource table (or of one of its subresources) at one served version with the store behind
it. Built-in and custom resources differ only in what their scopes hold. What is computed and never kept (reviews,
bindings) has an endpoint without a store.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import orjson

from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.expected import Expected
from pilothouse.endpoints.known_bodies import KnownBodies
from pilothouse.endpoints.negotiation import ALL_FORMATS, ALL_TRANSFORMS
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.emptied import like
from pilothouse.machinery.times import now
from pilothouse.net.messages import Response
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry

Convert = Callable[[Object], Object]
Render = Callable[[Entry], bytes]
Prepare = Callable[[Sequence[Entry]], Awaitable[None]]
ALL_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


_WHOLE: Final = frozenset({"", "status", "ephemeralcontainers", "resize", "approval", "finalize"})
"""Subresources that are written as the whole object."""


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """A resource or subresource at one version, and the verbs it takes."""

    resource: Resource
    subresource: str
    kind: GroupVersionKind
    expected: Expected
    verbs: Mapping[str, Callable[[Self, APIRequest], Awaitable[Response]]]
    formats: tuple[str, ...] = ALL_FORMATS
    transforms: frozenset[str] = ALL_TRANSFORMS
    """What an object is given as, beside itself."""
    takes_path: bool = False
    """Whether what follows the subresource in the path belongs to it (proxies)."""
    deprecation: str = ""
    """The warning every request to this endpoint gets."""
    admission: Admission | None = None

    @property
    def api_version(self) -> str:
        return str(self.kind.group_version)

    def context(self, request: APIRequest) -> Context:
        """What strategies may know of this request."""
        user = request.user
        return Context(
            user=user.name,
            namespace=request.info.namespace if self.resource.namespaced else "",
            verb=request.info.verb,
            subresource=self.subresource,
            now=now(),
            groups=user.groups,
            user_uid=user.uid,
            user_extra=user.extra,
            weight=request.weight,
        )


@dataclass(slots=True, kw_only=True)
class ShownScope(Endpoint):
    """An endpoint that shows objects, wherever they come from: one or many, in every form that clients ask for."""

    strategy: Strategy
    from_hub: Convert | None = None
    """Brings an object of the hub version into the served one's; None where they are the same."""
    keeps_type: bool = False
    """Whether cached bytes carry kind and apiVersion themselves (custom resources)."""
    render: Render | None = None
    """Makes this endpoint's bytes of an entry where they are not the cached ones."""
    list_kind: str = ""
    columns: tuple[Column, ...] = ()
    head: bytes = b""
    list_head: bytes = b""
    form: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names this endpoint's version among the forms kept with an entry."""

    def __post_init__(self) -> None:
        version = str(self.kind.group_version)
        self.list_kind = self.list_kind or f"{self.kind.kind}List"
        if not self.keeps_type:
            self.head = b'{"kind":"%s","apiVersion":"%s",' % (self.kind.kind.encode(), version.encode())
        if self.from_hub is not None and self.render is None:
            self.render = self._render
        self.list_head = b'{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"' % (
            self.list_kind.encode(),
            version.encode(),
        )

    def _render(self, entry: Entry) -> bytes:
        """The entry in the endpoint's version, made once and kept with it."""
        assert self.from_hub is not None
        data: bytes | None = None if (forms := entry.forms) is None else forms.get(self.form)
        if data is None:
            data = orjson.dumps(self.from_hub(orjson.loads(entry.data)))
            entry.keep(self.form, data)
        return data

    def weight(self, entry: Entry) -> int:
        """How long an entry is that can be rendered, in bytes."""
        return len(entry.data)

    def served_object(self, obj: Object) -> Object:
        """A hub object as this endpoint shows it, with kind and apiVersion."""
        if self.from_hub is not None:
            obj = self.from_hub(obj)
        return {"kind": self.kind.kind, "apiVersion": self.api_version, **obj}


@dataclass(slots=True, kw_only=True)
class ResourceScope(ShownScope):
    """An endpoint with stored objects behind it."""

    store: Store
    to_hub: Convert | None = None
    """Brings an object of the served version into the hub's; None where they are the same."""
    own_defaults: Callable[[Object], None] | None = None
    """Fills in what the served version fills in, before the object becomes one of the hub version."""
    prepare: Prepare | None = None
    """Waited for before entries are rendered, where that cannot be done at once (conversion by webhook)."""
    make_field_manager: Callable[[], FieldManager] | None = None
    patch_types: tuple[str, ...] = ALL_PATCHES
    known_bodies: KnownBodies = field(default_factory=KnownBodies)
    """Bodies of creates that come again and again."""

    _field_manager: FieldManager | None = None
    _empty: dict[str, Any] | None = None

    @property
    def field_manager(self) -> FieldManager | None:
        """Tracks who owns which field; made at the first write."""
        if self._field_manager is None and self.make_field_manager is not None:
            self._field_manager = self.make_field_manager()
        return self._field_manager

    @property
    def empty(self) -> dict[str, Any]:
        """What an object without content shows; bookmarks are such objects."""
        if self._empty is None:
            self._empty = {"metadata": {}, **decode(self.expected.struct, self.strategy.blank)[0]}
        return self._empty

    def weight(self, entry: Entry) -> int:
        """As its store knows it: somebody else may have converted it into something longer."""
        return self.store.weight(entry)

    def glance(self, request: APIRequest) -> tuple[Entry, Object] | None:
        """The object that a request names as it seems to be stored, where bodies here are such objects."""
        same = self.from_hub is None and self.subresource in _WHOLE and self.expected.__class__ is Expected
        info = request.info
        return self.store.glance(info.namespace if self.resource.namespaced else "", info.name) if same else None

    def hub_object(self, obj: Object) -> Object:
        """A decoded body as the store takes it: in the hub version and, for built-in kinds, without its type."""
        if self.to_hub is not None:
            obj = like(self.to_hub(obj), obj)
        if not self.keeps_type:
            obj.pop("kind", None)
            obj.pop("apiVersion", None)
        return obj

    def defaulted(self, obj: Object, strategy: Strategy | None = None) -> Object:
        """The same with defaults, those of the endpoint's own strategy unless told."""
        if self.own_defaults is not None:
            self.own_defaults(obj)
        obj = self.hub_object(obj)
        (strategy or self.strategy).default(obj)
        return obj


EndpointVerb = Callable[[Endpoint, APIRequest], Awaitable[Response]]
"""Serves a request to an endpoint, of whichever class that is."""
Verb = Callable[[ResourceScope, APIRequest], Awaitable[Response]]
"""Serves a request to an endpoint with stored objects behind it."""
