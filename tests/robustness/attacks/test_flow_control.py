"""Priority levels as large as they may be."""

from __future__ import annotations

from typing import Any

GROUP = "flowcontrol.apiserver.k8s.io"


def test_a_level_of_millions_of_queues(victim: Any) -> None:
    """They take room when somebody is in them."""
    queuing = {"queues": 10_000_000, "handSize": 2, "queueLengthLimit": 50}
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": queuing}}
    level = {"apiVersion": f"{GROUP}/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "huge"}}
    path = f"/apis/{GROUP}/v1/prioritylevelconfigurations"
    dumped = "/debug/api_priority_and_fairness/dump_priority_levels"
    with victim.attacked("ten million queues"):
        body = {**level, "spec": {"type": "Limited", "limited": limited}}
        assert victim.call("POST", path, body).status == 201
        while b"huge" not in victim.call("GET", dumped).body:
            assert victim.server.process.poll() is None
        assert victim.call("GET", "/debug/api_priority_and_fairness/dump_queues").status == 200
        assert victim.call("DELETE", f"{path}/huge").status == 200
