"""The strategies of runtime classes, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "runtimeclasses": "runtime_class.RuntimeClassStrategy",
    },
)
