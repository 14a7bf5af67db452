"""The strategies of API services, by resource."""

from __future__ import annotations

from pilothouse.apis.apiregistration.api_service import APIServiceStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"apiservices": APIServiceStrategy}
