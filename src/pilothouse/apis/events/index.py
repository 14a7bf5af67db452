"""The strategies of events, by resource."""

from __future__ import annotations

from pilothouse.apis.events.event import StrictEventStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"events": StrictEventStrategy}
