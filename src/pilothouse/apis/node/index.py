"""The strategies of runtime classes, by resource."""

from __future__ import annotations

from pilothouse.apis.node.runtime_class import RuntimeClassStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"runtimeclasses": RuntimeClassStrategy}
