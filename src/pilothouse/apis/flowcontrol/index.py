"""The strategies of flow schemas and priority levels, by resource."""

from __future__ import annotations

from pilothouse.apis.flowcontrol.flow_schema import FlowSchemaStrategy
from pilothouse.apis.flowcontrol.priority_level_configuration import PriorityLevelStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "flowschemas": FlowSchemaStrategy,
    "prioritylevelconfigurations": PriorityLevelStrategy,
}
