"""PersistentVolumeClaimResize: a claim grows only when it is bound and its storage class can do it."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.quota.claims import storage_class
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.amounts import read_amounts
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.quantity import ZERO, Quantity

_UNSUPPORTED: Final = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


class PersistentVolumeClaimResize(Plugin):
    """See the module's docstring."""

    name = "PersistentVolumeClaimResize"
    operations = frozenset({UPDATE})
    resources = frozenset({GroupResource("", "persistentvolumeclaims")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._classes = environment.late_objects("storage.k8s.io", "v1", "storageclasses")

    async def validate(self, attributes: Attributes) -> None:
        """Refuse growth where it cannot happen."""
        claim, old = attributes.object, attributes.old_object
        if claim is None or old is None or _size(claim) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        name = storage_class(claim)
        await self._classes.ready()
        found = self._classes.get("", name) if name and name == storage_class(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            raise forbidden(attributes, _UNSUPPORTED)


def _size(claim: dict[str, Any]) -> Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests")
    return read_amounts(requests).get("storage", ZERO)
