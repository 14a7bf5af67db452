"""The strategies of storage versions, by resource."""

from __future__ import annotations

from pilothouse.apis.apiserverinternal.storage_version import StorageVersionStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"storageversions": StorageVersionStrategy}
