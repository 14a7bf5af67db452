"""The QoS class that a pod's requests and limits amount to."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.resource_names import amount, is_pod_level
from pilothouse.apis.gates import default_gates
from pilothouse.machinery.objects import Object

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"


def qos_of(pod: Object, gates: frozenset[str] | None = None) -> str:
    """The class that was settled at creation, or that which the spec amounts to."""
    settled: str = (pod.get("status") or {}).get("qosClass", "")
    return settled or compute_qos(pod["spec"], gates)


def compute_qos(spec: Object, gates: frozenset[str] | None = None) -> str:
    """Guaranteed if all containers have equal requests and limits, best effort if none has any, else burstable."""
    resources, gates = spec.get("resources"), default_gates() if gates is None else gates
    if resources is not None and "PodLevelResources" in gates:
        names = (name for kind in ("requests", "limits") for name in resources.get(kind) or ())
        if "PodLevelResourcesFixKubeletQOSClass" not in gates or any(map(is_pod_level, names)):
            return _qos_of_resources(resources)
    found = ""
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            qos = _qos_of_resources(container.get("resources") or {})
            if qos == BURSTABLE or (found and qos != found):
                return BURSTABLE
            found = qos
    return found or BEST_EFFORT


def _qos_of_resources(resources: Object) -> str:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if not requests and not limits:
        return BEST_EFFORT
    cpu = _qos_of_amounts(requests.get("cpu", "0"), limits.get("cpu", "0"))
    memory = _qos_of_amounts(requests.get("memory", "0"), limits.get("memory", "0"))
    return cpu if cpu == memory else BURSTABLE


def _qos_of_amounts(request: str, limit: str) -> str:
    if request != limit and amount(request).compare(amount(limit)):
        return BURSTABLE
    return BEST_EFFORT if amount(request).is_zero else GUARANTEED
