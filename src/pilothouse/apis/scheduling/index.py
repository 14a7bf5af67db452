"""The strategies of scheduling kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.scheduling.pod_group import CompositePodGroupStrategy, PodGroupStrategy
from pilothouse.apis.scheduling.priority_class import PriorityClassStrategy
from pilothouse.apis.scheduling.workload import WorkloadStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "priorityclasses": PriorityClassStrategy,
    "podgroups": PodGroupStrategy,
    "compositepodgroups": CompositePodGroupStrategy,
    "workloads": WorkloadStrategy,
}
