"""PodTolerationRestriction: namespaces give their pods tolerations, and say which ones they may have."""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.admission.configuration import require_kind
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.tolerations import Toleration, merge_tolerations, within
from pilothouse.apis.core.pod.qos import BEST_EFFORT, qos_of
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors, go_json
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import weighed

_DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_PRESSURE: Final = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


class PodTolerationRestriction(Plugin):
    """See the module's docstring."""

    name = "PodTolerationRestriction"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        if configuration is not None:
            group = "podtolerationrestriction.admission.k8s.io"
            require_kind(configuration, group, ("v1alpha1",), "Configuration")
        self._defaults: list[Toleration] = (configuration or {}).get("default") or []
        self._allowed: list[Toleration] = (configuration or {}).get("whitelist") or []
        self._namespaces = environment.objects("", "v1", "namespaces")

    async def admit(self, attributes: Attributes) -> None:
        """Add the namespace's tolerations."""
        pod = attributes.object or {}
        spec = pod.setdefault("spec", {})
        extra: list[Toleration] = []
        if attributes.operation == CREATE:
            own = await self._read(attributes, _DEFAULTS)
            extra = list(self._defaults if own is None else own)
        if await weighed(attributes.weight, qos_of, pod) != BEST_EFFORT:
            extra.append(dict(_PRESSURE))
        if extra:
            given = spec.get("tolerations") or []
            spec["tolerations"] = await weighed(attributes.weight, merge_tolerations, given, extra)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse tolerations that are not allowed; kube-apiserver answers 500 here."""
        given = ((attributes.object or {}).get("spec") or {}).get("tolerations") or []
        if not given:
            return
        allowed, scope = await self._read(attributes, _ALLOWED), "namespace"
        if allowed is None:
            allowed, scope = self._allowed, "cluster"
        if not await weighed(attributes.weight, within, given, allowed):
            raise errors.generic(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
                f"{scope} whitelist"
            )

    async def _read(self, attributes: Attributes, annotation: str) -> list[Toleration] | None:
        namespace = await self._namespaces.find("", attributes.namespace)
        if namespace is None:
            raise errors.not_found(GroupResource("", "namespaces"), attributes.namespace)
        text = (namespace["metadata"].get("annotations") or {}).get(annotation)
        if not text:
            return None if text is None else []
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise errors.generic(go_json.explain(text.encode())) from None
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise errors.generic("json: cannot unmarshal into Go value of type []v1.Toleration")
        return value
