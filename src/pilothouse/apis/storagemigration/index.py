"""The strategies of storage version migrations, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "storageversionmigrations": "storage_version_migration.MigrationStrategy",
    },
)
