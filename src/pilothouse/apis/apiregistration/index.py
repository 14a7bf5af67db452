"""The strategies of API services, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "apiservices": "api_service.APIServiceStrategy",
    },
)
