"""The strategies of custom resource definitions, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "customresourcedefinitions": "custom_resource_definition.strategy.DefinitionStrategy",
    },
)
