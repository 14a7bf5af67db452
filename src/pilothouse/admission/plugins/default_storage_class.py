"""DefaultStorageClass: a claim that names no class gets the default one, the newest where there are several."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.newest import newest_name
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(Plugin):
    """See the module's docstring."""

    name = "DefaultStorageClass"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "persistentvolumeclaims")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._classes = environment.late_objects("storage.k8s.io", "v1", "storageclasses")

    async def admit(self, attributes: Attributes) -> None:
        """Fill in the class."""
        claim = attributes.object
        if claim is None:
            return
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _CLASS in (claim["metadata"].get("annotations") or ()):
            return
        await self._classes.ready()
        default = self._classes.remembered("default", self._find_default)
        if default:
            spec["storageClassName"] = default

    def _find_default(self) -> str:
        return newest_name(each for each in self._classes.list() if _is_default(each["metadata"]))


def _is_default(metadata: dict[str, Any]) -> bool:
    annotations = metadata.get("annotations") or {}
    return any(annotations.get(mark) == "true" for mark in _MARKS)
