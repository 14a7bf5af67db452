"""What is asked and answered in one POST.

Reviews are never stored. Each is read, tracked, admitted and validated like any created object, then answered with its
status filled in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apis.conversion import converters_for
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import CREATE
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import Media, negotiate
from pilothouse.endpoints.output.objects import computed_object
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import Endpoint, EndpointVerb
from pilothouse.endpoints.write_request import attributes_of, write_options_object
from pilothouse.machinery.field_manager import FieldManager, manager_of
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import without_notes
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.messages import Response
from pilothouse.registry.rest.before_create import ensure_namespace, wipe_system_fields

_managers: dict[tuple[GroupVersionKind, str], FieldManager] = {}

Answer = Callable[["Review"], Awaitable[Object]]


class Review:
    """One posted review, past mutating admission."""

    __slots__ = ("_ctx", "_endpoint", "_media", "object", "request", "weight")

    def __init__(self, endpoint: Endpoint, request: APIRequest, ctx: Context, media: Media, obj: Object) -> None:
        self._endpoint, self._ctx, self._media = endpoint, ctx, media
        self.request, self.object = request, obj
        self.weight = request.weight
        """How long the answer is; whoever makes a longer one than was asked says so."""

    async def check(self, validate: Callable[..., None], *more: str) -> None:
        """Hold the object to the rules of its kind; raises the refusal."""
        await weighed(self.request.weight, validate, self.object, *more)

    async def validate(self) -> None:
        """Let validating admission have its say."""
        admission = self._endpoint.admission
        if admission is not None and admission.handles(CREATE):
            options = write_options_object(self.request, CREATE)
            attributes = attributes_of(self._endpoint, self.request, self._ctx, CREATE, self.object, None, options)
            await admission.validate(attributes)

    async def respond(self, answer: Object) -> Response:
        """The answered review, as created."""
        for warning in self._ctx.warnings:
            self.request.warn(warning)
        head = {"kind": self._endpoint.kind.kind, "apiVersion": self._endpoint.api_version}
        _, from_hub = converters_for(self._endpoint.resource)
        if from_hub is not None:
            answer = from_hub(answer)
        if self.weight >= LONG:
            self.request.note_made(answer)
        shown = computed_object(self._endpoint, self._media, {**head, **answer})
        return await weighed(self.weight, object_response, self._media, shown, 201)


async def read_review(
    endpoint: Endpoint,
    request: APIRequest,
    default: Callable[[Object], None] | None = None,
    *,
    keeps_metadata: bool = False,
) -> Review:
    """Read the posted object and bring it past mutating admission."""
    media = negotiate(request, endpoint.formats, transforms=endpoint.transforms)
    obj, options = await read_object(request, endpoint.expected)
    obj = await weighed(request.weight, without_notes, obj)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if default is not None:
        default(obj)
    if request.audit is not None:
        shown = {"kind": endpoint.kind.kind, "apiVersion": endpoint.api_version, **obj}
        await weighed(request.weight if request.audit.wants_request else 0, request.audit.note_object, shown)
    ctx = endpoint.context(request)
    ctx.dry_run = options.dry_run
    if not keeps_metadata:
        wipe_system_fields(obj["metadata"])
    ensure_namespace(endpoint.resource, ctx, obj["metadata"])
    agent = request.headers.get(b"user-agent", b"").decode("latin-1")
    manager = manager_of(options.field_manager, agent)
    obj = await weighed(request.weight, _manager_for(endpoint).update, None, obj, manager, ctx.now)
    admission = endpoint.admission
    if admission is not None and admission.handles(CREATE):
        attributes = attributes_of(endpoint, request, ctx, CREATE, obj, None, write_options_object(request, CREATE))
        await admission.admit(attributes)
        obj = attributes.object if attributes.object is not None else obj
    to_hub, _ = converters_for(endpoint.resource)
    return Review(endpoint, request, ctx, media, obj if to_hub is None else to_hub(obj))


def _manager_for(endpoint: Endpoint) -> FieldManager:
    key = (endpoint.kind, endpoint.subresource)
    manager = _managers.get(key)
    if manager is None:
        manager = FieldManager(endpoint.expected.struct, endpoint.kind, subresource=endpoint.subresource)
        _managers[key] = manager
    return manager


def answering(
    answer: Answer, default: Callable[[Object], None] | None = None, *, keeps_metadata: bool = False
) -> EndpointVerb:
    """The verb that creates a review: read, answered, told. ``default`` fills in what the client left open.

    What only the server may set is not taken from the client, unless ``keeps_metadata``: then it names what is meant.
    """

    async def create(endpoint: Endpoint, request: APIRequest) -> Response:
        review = await read_review(endpoint, request, default, keeps_metadata=keeps_metadata)
        return await review.respond(await answer(review))

    return create
