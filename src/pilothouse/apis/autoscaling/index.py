"""The strategies of autoscalers, by resource."""

from __future__ import annotations

from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.strategy import AutoscalerStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"horizontalpodautoscalers": AutoscalerStrategy}
