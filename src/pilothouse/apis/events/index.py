"""The strategies of events, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "events": "event.StrictEventStrategy",
    },
)
