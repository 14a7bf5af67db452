"""The strategies of workload kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "controllerrevisions": "controller_revision.ControllerRevisionStrategy",
        "daemonsets": "daemon_set.DaemonSetStrategy",
        "deployments": "deployment.DeploymentStrategy",
        "replicasets": "replica_set.ReplicaSetStrategy",
        "statefulsets": "stateful_set.StatefulSetStrategy",
    },
)
