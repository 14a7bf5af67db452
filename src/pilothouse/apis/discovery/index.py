"""The strategies of endpoint slices, by resource."""

from __future__ import annotations

from pilothouse.apis.discovery.endpoint_slice import EndpointSliceStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"endpointslices": EndpointSliceStrategy}
