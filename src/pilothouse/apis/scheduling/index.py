"""The strategies of scheduling kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "priorityclasses": "priority_class.PriorityClassStrategy",
        "podgroups": "pod_group.PodGroupStrategy",
        "compositepodgroups": "pod_group.CompositePodGroupStrategy",
        "workloads": "workload.WorkloadStrategy",
    },
)
