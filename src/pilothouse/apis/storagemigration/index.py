"""The strategies of storage version migrations, by resource."""

from __future__ import annotations

from pilothouse.apis.storagemigration.storage_version_migration import MigrationStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"storageversionmigrations": MigrationStrategy}
