"""The strategies of pod disruption budgets, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "poddisruptionbudgets": "pod_disruption_budget.BudgetStrategy",
    },
)
