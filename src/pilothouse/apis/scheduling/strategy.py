"""The strategies of scheduling.k8s.io."""

from __future__ import annotations

from pilothouse.apis.scheduling.priority_class import PriorityClassStrategy
from pilothouse.apis.scheduling.workloads import CompositePodGroupStrategy, PodGroupStrategy, WorkloadStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "priorityclasses": PriorityClassStrategy,
    "podgroups": PodGroupStrategy,
    "compositepodgroups": CompositePodGroupStrategy,
    "workloads": WorkloadStrategy,
}
