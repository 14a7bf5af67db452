"""The strategies of endpoint slices, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "endpointslices": "endpoint_slice.EndpointSliceStrategy",
    },
)
