"""DefaultIngressClass: an ingress that names no class gets the default one, the newest where there are several."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.newest import newest_name
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_MARK: Final = "ingressclass.kubernetes.io/is-default-class"
_CLASS: Final = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    """See the module's docstring."""

    name = "DefaultIngressClass"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("networking.k8s.io", "ingresses")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._classes = environment.late_objects("networking.k8s.io", "v1", "ingressclasses")

    async def admit(self, attributes: Attributes) -> None:
        """Fill in the class."""
        ingress = attributes.object
        if ingress is None:
            return
        spec = ingress.setdefault("spec", {})
        if spec.get("ingressClassName") is not None or _CLASS in (ingress["metadata"].get("annotations") or ()):
            return
        await self._classes.ready()
        default = self._classes.remembered("default", self._find_default)
        if default:
            spec["ingressClassName"] = default

    def _find_default(self) -> str:
        marked = (
            each for each in self._classes.list() if (each["metadata"].get("annotations") or {}).get(_MARK) == "true"
        )
        return newest_name(marked)
