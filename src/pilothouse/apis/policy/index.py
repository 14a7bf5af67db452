"""The strategies of pod disruption budgets, by resource."""

from __future__ import annotations

from pilothouse.apis.policy.pod_disruption_budget import BudgetStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"poddisruptionbudgets": BudgetStrategy}
