"""What may change so that a pod that fits nowhere fits: who waits for a node is not asked again for anything else."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from pilothouse.simulation.scheduler.devices.claims import uses_devices
from pilothouse.simulation.scheduler.placement import NoFit
from pilothouse.simulation.scheduler.pod_info import PodInfo


class Change(Enum):
    """Something happened to the cluster."""

    NODES = auto()
    ROOM = auto()
    """Pods went."""
    PODS = auto()
    """Pods came, which others may want to be near to."""
    VOLUMES = auto()
    DEVICES = auto()


EVERYTHING: Final = frozenset(Change)


def helpful(pod: PodInfo, no_fit: NoFit | None) -> frozenset[Change]:
    """What may help a pod that found no node, for these reasons."""
    found = {Change.NODES}
    if no_fit is None or no_fit.for_all or any(verdict.resolvable for verdict in no_fit.verdicts.values()):
        found.add(Change.ROOM)
    if pod.has_affinity or pod.spec.get("topologySpreadConstraints"):
        found.add(Change.PODS)
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in pod.spec.get("volumes") or ()):
        found.add(Change.VOLUMES)
    if uses_devices(pod):
        found.add(Change.DEVICES)
    return frozenset(found)
