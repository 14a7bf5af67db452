"""The strategies of evictions and requests for them, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "evictions": "eviction.EvictionStrategy",
        "evictionrequests": "eviction_request.EvictionRequestStrategy",
    },
)
