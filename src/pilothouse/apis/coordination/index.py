"""The strategies of leases and candidates for them, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "leases": "lease.LeaseStrategy",
        "leasecandidates": "lease_candidate.LeaseCandidateStrategy",
    },
)
