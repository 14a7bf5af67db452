"""What one namespace makes the controllers and the scheduler do must not keep those of others waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.robustness.attacks.conftest import MEGABYTE, Victim
from tests.robustness.attacks.test_living_cluster import CORE, create, run_pod, settle_in

MADE_MEANWHILE = 2_500
"""Pods that one may have made until the other's only one runs: five rounds of a controller that makes them."""


def deployment(namespace: str, replicas: int, **spec: Any) -> dict[str, Any]:
    labels = {"app": namespace}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}


def test_more_pods_than_there_is_room_for(launch_victim: Callable[..., Victim]) -> None:
    """They stay where they are, since no node will have them."""
    victim = launch_victim("--controllers=*", "--scheduler", "--simulate-nodes=1")
    greedy, modest = settle_in(victim, "greedy"), settle_in(victim, "modest")
    run_pod(victim, modest, "first")
    paths = {name: f"/apis/apps/v1/namespaces/{name}/deployments" for name in (greedy, modest)}

    def made() -> int:
        answer = victim.call("GET", f"{CORE}/{greedy}/pods?limit=1").json
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    with victim.attacked("a deployment of two thousand million pods beside one of one", allowance=256 * MEGABYTE):
        spec = deployment(greedy, 2**31 - 1, nodeSelector={"no": "where"})
        create(victim, paths[greedy], "apps/v1", "Deployment", "all", spec=spec)
        while (before := made()) < 1_000:
            assert victim.server.process.poll() is None
        create(victim, paths[modest], "apps/v1", "Deployment", "one", spec=deployment(modest, 1))
        while not victim.call("GET", f"{paths[modest]}/one").json.get("status", {}).get("availableReplicas"):
            assert made() - before <= MADE_MEANWHILE, "its pod waits for all of the other's"
