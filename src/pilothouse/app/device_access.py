"""What claims of devices need beyond the right to write them.

Devices as an administrator can be asked for, and be given, in namespaces with a label that says so; each part of a
claim's status has a right of its own (``claim_statuses``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.app.claim_statuses import status_faults
from pilothouse.app.guarding import Guard
from pilothouse.authz.authorizer import Authorizer
from pilothouse.controllers.own_objects import existing
from pilothouse.endpoints.admission import CREATE, Admission, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, internal
from pilothouse.registry.storage import StorageFactory

GROUP: Final = "resource.k8s.io"
_LABEL: Final = "resource.kubernetes.io/admin-access"
_REQUESTS: Final = Path("spec", "devices", "requests")
_RESULTS: Final = Path("status", "allocation", "devices", "results")


class DeviceGuard(Guard):
    """Admission for resource claims and their templates."""

    def __init__(self, admission: Admission | None, storage: StorageFactory, authorizer: Authorizer) -> None:
        super().__init__(admission)
        self._namespaces = storage.store("", "v1", "namespaces")
        self._authorizer = authorizer
        self._divides = "DRAResourceClaimGranularStatusAuthorization" in storage.gates

    async def check(self, attributes: Attributes) -> None:
        where = _asked_at(attributes)
        fault = None if where is None else await self._fault(attributes.namespace, where)
        faults = [] if fault is None else [fault]
        if self._divides and attributes.resource.resource == "resourceclaims" and attributes.subresource == "status":
            faults += await status_faults(attributes, self._authorizer)
        if faults:
            raise errors.invalid(attributes.kind.group_kind, attributes.name, faults)

    async def _fault(self, namespace: str, path: Path) -> FieldError | None:
        found = await existing(self._namespaces, "", namespace)
        if found is None:
            why = f'could not retrieve namespace to verify admin access: namespaces "{namespace}" not found'
            return internal(path, why)
        if (found["metadata"].get("labels") or {}).get(_LABEL) == "true":
            return None
        why = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
        return forbidden(path, why)


def _asked_at(attributes: Attributes) -> Path | None:
    """Where a write asks for access that was not there before."""
    resource, obj, old = attributes.resource.resource, attributes.object or {}, attributes.old_object
    if attributes.operation == CREATE and resource in ("resourceclaims", "resourceclaimtemplates"):
        spec = obj["spec"]["spec"] if resource == "resourceclaimtemplates" else obj["spec"]
        requests = (spec.get("devices") or {}).get("requests") or ()
        return _first([request.get("exactly") or {} for request in requests], _REQUESTS)
    if resource == "resourceclaims" and attributes.subresource == "status" and old is not None:
        return None if _first(_results(old), _RESULTS) else _first(_results(obj), _RESULTS)
    return None


def _results(claim: dict[str, Any]) -> Sequence[dict[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _first(items: Sequence[dict[str, Any]], path: Path) -> Path | None:
    at = next((at for at, item in enumerate(items) if item.get("adminAccess")), None)
    return None if at is None else path.index(at).child("adminAccess")
