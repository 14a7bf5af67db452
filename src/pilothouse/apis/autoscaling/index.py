"""The strategies of autoscalers, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "horizontalpodautoscalers": "horizontal_pod_autoscaler.strategy.AutoscalerStrategy",
    },
)
