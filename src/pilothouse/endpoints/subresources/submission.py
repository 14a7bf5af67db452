"""POSTs that ask for something to be done instead of storing what they carry: bindings, evictions."""

from __future__ import annotations

from pilothouse.endpoints.admission import CREATE
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import Media, negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_request import WriteRequest
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import Response
from pilothouse.registry.rest.before_create import ensure_namespace


class Submission(WriteRequest):
    """One such request, read and past mutating admission."""

    __slots__ = ("media", "object")

    media: Media
    object: Object

    async def validate(self) -> None:
        """Let validating admission have its say."""
        check = self._validator(CREATE)
        if check is not None:
            await check(self.object, None)

    def succeed(self) -> Response:
        """The answer of a request that was carried out."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return object_response(self.media, status, 201)


async def read_submission(scope: ResourceScope, request: APIRequest) -> Submission:
    """Read the request's object and let mutating admission change it."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    obj, options = await read_object(request, scope.expected)
    if request.audit is not None:
        await weighed(request.weight if request.audit.wants_request else 0, request.audit.note_object, obj)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    submission = Submission(scope, request, options)
    ensure_namespace(scope.resource, submission.ctx, obj["metadata"])
    submission.media = media
    submission.object = await submission._prepare(CREATE, obj, None)
    return submission
