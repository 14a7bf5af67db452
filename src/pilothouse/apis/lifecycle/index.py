"""The strategies of evictions and requests for them, by resource."""

from __future__ import annotations

from pilothouse.apis.lifecycle.eviction import EvictionStrategy
from pilothouse.apis.lifecycle.eviction_request import EvictionRequestStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "evictions": EvictionStrategy,
    "evictionrequests": EvictionRequestStrategy,
}
