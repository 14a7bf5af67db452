"""The strategies of leases and candidates for them, by resource."""

from __future__ import annotations

from pilothouse.apis.coordination.lease import LeaseStrategy
from pilothouse.apis.coordination.lease_candidate import LeaseCandidateStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"leases": LeaseStrategy, "leasecandidates": LeaseCandidateStrategy}
