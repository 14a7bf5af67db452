"""The quality of service that a pod's requests and limits amount to."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.resource_names import amount, is_pod_level
from pilothouse.apis.gates import default_gates

Struct = dict[str, Any]

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"


def quality_of(pod: Struct, gates: frozenset[str] | None = None) -> str:
    """The class that was settled at creation, or that which the spec amounts to."""
    settled: str = (pod.get("status") or {}).get("qosClass", "")
    return settled or compute_quality(pod["spec"], gates)


def compute_quality(spec: Struct, gates: frozenset[str] | None = None) -> str:
    """Guaranteed if all containers have equal requests and limits, best effort if none has any, else burstable."""
    resources, gates = spec.get("resources"), default_gates() if gates is None else gates
    if resources is not None and "PodLevelResources" in gates:
        names = (name for kind in ("requests", "limits") for name in resources.get(kind) or ())
        if "PodLevelResourcesFixKubeletQOSClass" not in gates or any(map(is_pod_level, names)):
            return _quality_of_resources(resources)
    found = ""
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            quality = _quality_of_resources(container.get("resources") or {})
            if quality == BURSTABLE or (found and quality != found):
                return BURSTABLE
            found = quality
    return found or BEST_EFFORT


def _quality_of_resources(resources: Struct) -> str:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if not requests and not limits:
        return BEST_EFFORT
    cpu = _quality_of_amounts(requests.get("cpu", "0"), limits.get("cpu", "0"))
    memory = _quality_of_amounts(requests.get("memory", "0"), limits.get("memory", "0"))
    return cpu if cpu == memory else BURSTABLE


def _quality_of_amounts(request: str, limit: str) -> str:
    if request != limit and amount(request).compare(amount(limit)):
        return BURSTABLE
    return BEST_EFFORT if amount(request).is_zero else GUARANTEED
