"""The strategies of workload kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.apps.controller_revision import ControllerRevisionStrategy
from pilothouse.apis.apps.daemon_set import DaemonSetStrategy
from pilothouse.apis.apps.deployment import DeploymentStrategy
from pilothouse.apis.apps.replica_set import ReplicaSetStrategy
from pilothouse.apis.apps.stateful_set import StatefulSetStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "controllerrevisions": ControllerRevisionStrategy,
    "daemonsets": DaemonSetStrategy,
    "deployments": DeploymentStrategy,
    "replicasets": ReplicaSetStrategy,
    "statefulsets": StatefulSetStrategy,
}
