"""What writing the status of a claim of devices needs beyond the right to write it: see ``claim_statuses``."""

from __future__ import annotations

from typing import Final

from pilothouse.app.claim_statuses import status_faults
from pilothouse.app.guarding import Guard
from pilothouse.authz.authorizer import Authorizer
from pilothouse.endpoints.admission import Admission, Attributes
from pilothouse.machinery import errors

_GROUP: Final = "resource.k8s.io"
_GATE: Final = "DRAResourceClaimGranularStatusAuthorization"


def guard_devices(admission: Admission | None, authorizer: Authorizer, gates: frozenset[str]) -> dict[str, Guard]:
    """By group, the admission that asks for these rights; nothing while the feature is off."""
    return {_GROUP: DeviceGuard(admission, authorizer)} if _GATE in gates else {}


class DeviceGuard(Guard):
    """Admission for resource claims."""

    def __init__(self, admission: Admission | None, authorizer: Authorizer) -> None:
        super().__init__(admission)
        self._authorizer = authorizer

    async def check(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "resourceclaims" or attributes.subresource != "status":
            return
        faults = await status_faults(attributes, self._authorizer)
        if faults:
            raise errors.invalid(attributes.kind.group_kind, attributes.name, faults)
