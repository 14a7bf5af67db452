"""StorageObjectInUseProtection: volumes, claims and attribute classes carry a finalizer from the start.

The controllers that know whether they are in use take it away.
"""

from __future__ import annotations

from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_FINALIZERS: Final = {
    GroupResource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    GroupResource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    GroupResource("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    """See the module's docstring."""

    name = "StorageObjectInUseProtection"
    operations = frozenset({CREATE})
    resources = frozenset(_FINALIZERS)

    async def admit(self, attributes: Attributes) -> None:
        """Add the finalizer."""
        if attributes.object is None:
            return
        finalizer = _FINALIZERS[attributes.resource.group_resource]
        metadata = attributes.object["metadata"]
        given = metadata.get("finalizers") or []
        if finalizer not in given:
            metadata["finalizers"] = [*given, finalizer]
