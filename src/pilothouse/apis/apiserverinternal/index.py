"""The strategies of storage versions, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "storageversions": "storage_version.StorageVersionStrategy",
    },
)
