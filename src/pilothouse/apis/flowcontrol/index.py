"""The strategies of flow schemas and priority levels, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "flowschemas": "flow_schema.FlowSchemaStrategy",
        "prioritylevelconfigurations": "priority_level_configuration.PriorityLevelStrategy",
    },
)
