"""Body and URL must speak of the same object."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors

_UNNAMED: Final = "name must be provided"


def check_named(request: APIRequest) -> None:
    """Only paths of custom resources come here without the name of what is to change."""
    if not request.info.name:
        raise errors.bad_request(_UNNAMED)


def check_identity(scope: ResourceScope, request: APIRequest, obj: dict[str, Any]) -> None:
    """Body and URL speak of the same object; what a body of no namespace says about one does not matter."""
    metadata, name = obj["metadata"], request.info.name
    namespace = request.info.namespace if scope.resource.namespaced else ""
    place = metadata.get("namespace", "")
    if namespace and place and place != namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(why)
    given = metadata.get("name", "")
    if not given:
        raise errors.bad_request(f"the name of the object ({name} based on URL) was undeterminable: {_UNNAMED}")
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_uid(
    scope: ResourceScope, request: APIRequest, uid: str, old: dict[str, Any] | None, *, dry_run: bool
) -> None:
    """A body with a uid means that very object and no successor of the same name."""
    have = "" if old is None else old["metadata"].get("uid", "")
    if have != uid:
        store = scope.store
        key = (store.dry_key if dry_run else store.key)(request.info.namespace, request.info.name)
        why = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {have}"
        )
        raise errors.conflict(scope.resource.group_resource, request.info.name, why)
