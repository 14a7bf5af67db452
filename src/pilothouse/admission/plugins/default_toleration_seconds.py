"""DefaultTolerationSeconds: pods stay for some minutes on a node that is lost, unless they say otherwise."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_EFFECTS: Final = ("NoExecute", "")


class DefaultTolerationSeconds(Plugin):
    """See the module's docstring."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    only_looks = True

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._seconds = ((_NOT_READY, environment.not_ready_seconds), (_UNREACHABLE, environment.unreachable_seconds))

    async def admit(self, attributes: Attributes) -> None:
        """Add what is missing of the two tolerations."""
        if attributes.object is None:
            return
        spec = attributes.object.setdefault("spec", {})
        given = spec.get("tolerations")
        if not given:
            spec["tolerations"] = [_toleration(key, seconds) for key, seconds in self._seconds]
            return
        tolerated = {each.get("key", "") for each in given if each.get("effect", "") in _EFFECTS}
        if "" in tolerated:
            return
        added = [_toleration(key, seconds) for key, seconds in self._seconds if key not in tolerated]
        if added:
            spec["tolerations"] = [*given, *added]


def _toleration(key: str, seconds: int) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
