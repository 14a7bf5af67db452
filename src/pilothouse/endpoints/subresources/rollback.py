"""Rolling a deployment back: the revision to go back to is noted for the controller, past all rules for deployments."""

from __future__ import annotations

from pilothouse.apis.apps.deployment import ROLLBACK
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Strategy
from pilothouse.apis.validation import NEGATIVE
from pilothouse.endpoints.admission import CREATE, Admission
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.write_request import WriteRequest, attributes_of
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.objects import Object
from pilothouse.net.messages import Response


def make_rollback_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None
) -> ResourceScope:
    """``deployments/rollback`` of the versions that had it."""
    return working_endpoint(
        resource, sub, store_of(resource.group, resource.name), {"create": roll_back}, admission=admission
    )


async def roll_back(scope: ResourceScope, request: APIRequest) -> Response:
    """Note the revision, and annotations, with the deployment. Whether there is such a revision nobody asks here."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    rollback, options = await read_object(request, scope.expected)
    write = WriteRequest(scope, request, options)
    name = rollback.get("name", "")
    errs = _validate(rollback)
    if errs:
        raise errors.invalid(GroupKind("apps", "DeploymentRollback"), name, errs)
    if name != request.info.name:
        raise errors.bad_request("name in URL does not match name in DeploymentRollback object")
    admission = scope.admission
    if admission is not None and admission.handles(CREATE):
        attributes = attributes_of(scope, request, write.ctx, CREATE, {"metadata": {}, **rollback}, None)
        await admission.admit(attributes)
        await admission.validate(attributes)

    async def change(deployment: Object | None) -> Object:
        assert deployment is not None
        return _noted(deployment, rollback)

    await scope.store.update(write.ctx, name, change, strategy=Strategy(), create=False)
    message = f'rollback request for deployment "{name}" succeeded'
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "message": message}
    return object_response(media, {**status, "code": 200}, 201)


def _validate(rollback: Object) -> list[FieldError]:
    errs = [] if rollback.get("name") else [required(Path("name"), "")]
    revision = rollback["rollbackTo"].get("revision", 0)
    if revision < 0:
        errs.append(invalid(Path("rollback", "version"), revision, NEGATIVE))
    return errs


def _noted(deployment: Object, rollback: Object) -> Object:
    metadata = dict(deployment["metadata"])
    wanted = {**(rollback.get("updatedAnnotations") or {}), ROLLBACK: str(rollback["rollbackTo"].get("revision", 0))}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **wanted}
    return {**deployment, "metadata": metadata}
