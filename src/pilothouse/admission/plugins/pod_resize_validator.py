"""PodResizeValidator: a bound pod grows no larger than its node, and only on Linux."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.quota.pods import is_pod_level
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.amounts import add, pod_amounts, read_amounts
from pilothouse.endpoints.admission import UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.quantity import ZERO


class PodResizeValidator(Plugin):
    """See the module's docstring."""

    name = "PodResizeValidator"
    operations = frozenset({UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    subresources = frozenset({"resize"})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._nodes = environment.late_objects("", "v1", "nodes")

    async def validate(self, attributes: Attributes) -> None:
        """Look at the node's system and size."""
        pod, old = attributes.object or {}, attributes.old_object or {}
        spec = pod.get("spec") or {}
        name = spec.get("nodeName", "")
        if not name or old["metadata"].get("generation") == pod["metadata"].get("generation"):
            return
        await self._nodes.ready()
        node = self._nodes.get("", name)
        if node is None:
            raise forbidden(attributes, f"node {quote(name)} not found")
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise _refusal(attributes, why, "UnsupportedPlatform")
        why = _shortage(spec, (node.get("status") or {}).get("allocatable") or {})
        if why:
            raise _refusal(attributes, why, "NodeCapacity")


def _shortage(spec: dict[str, Any], allocatable: dict[str, Any]) -> str:
    requests = pod_amounts(spec, "requests", is_pod_level)
    add(requests, read_amounts(spec.get("overhead")))
    there = read_amounts(allocatable)
    cpu, memory = requests.get("cpu", ZERO), requests.get("memory", ZERO)
    most_cpu, most_memory = there.get("cpu", ZERO), there.get("memory", ZERO)
    parts = []
    if cpu > most_cpu:
        parts.append(f"cpu, requested: {cpu.milli_value()}, allocatable: {most_cpu.milli_value()}")
    if memory > most_memory:
        parts.append(f"memory, requested: {memory.value()}, allocatable: {most_memory.value()}")
    return f"node didn't have enough allocatable resources: {'; '.join(parts)}" if parts else ""


def _refusal(attributes: Attributes, why: str, reason: str) -> errors.StatusError:
    refusal = forbidden(attributes, why)
    refusal.details = {**(refusal.details or {}), "causes": [{"reason": reason}]}
    return refusal
