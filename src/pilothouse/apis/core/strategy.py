"""The strategies of the core group, merged from its parts."""

from __future__ import annotations

from pilothouse.apis.core.objects import OBJECT_STRATEGIES
from pilothouse.apis.core.pod_template import PodTemplateStrategy
from pilothouse.apis.core.pods.strategy import PodStrategy
from pilothouse.apis.core.replication_controller import ReplicationControllerStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    **OBJECT_STRATEGIES,
    "pods": PodStrategy,
    "podtemplates": PodTemplateStrategy,
    "replicationcontrollers": ReplicationControllerStrategy,
}
