"""Whatever fails and whenever it is killed: an autoscaler asks for what its metric says, and for nothing on the way."""

from __future__ import annotations

import pytest

from pilothouse.machinery.objects import Object

from ..trouble import SEEDS, TroubledControllers
from .test_autoscalers import Scaled

GROUP, PLURAL, KIND = "external.metrics.k8s.io", "queue", "ExternalMetricValue"


class Troubled(TroubledControllers, Scaled):
    """Also with the means of the other tests."""

    async def replicas(self) -> tuple[int, int]:
        """How many are asked for, and how many the autoscaler says it wants."""
        scaled = await self.of("apps", "v1", "replicasets").get("default", "web")
        autoscaler = await self.of("autoscaling", "v2", "horizontalpodautoscalers").get("default", "web")
        return scaled["spec"]["replicas"], (autoscaler.get("status") or {}).get("desiredReplicas", 0)


@pytest.mark.parametrize("seed", SEEDS)
async def test_scaling(seed: int) -> None:
    """Up at once, down when the window is over; a metric that cannot be read changes nothing."""
    async with Troubled(seed, "autoscaling", seconds=20.0) as cluster:
        asked: list[int] = []

        def as_metrics_say(sets: list[Object]) -> None:
            asked.extend(each["spec"]["replicas"] for each in sets)

        cluster.never(cluster.informers.of("apps", "v1", "replicasets"), as_metrics_say)
        item = {"metadata": {"name": "one", "namespace": "default"}, "metricName": "queue", "value": "30"}
        await cluster.serve(GROUP, PLURAL, KIND, item)
        target = {"type": "AverageValue", "averageValue": "10"}
        await cluster.prepare([{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}])

        async def are_three() -> bool:
            return await cluster.replicas() == (3, 3)

        await cluster.survive(are_three)
        assert set(asked) <= {1, 3}, asked
        metrics = cluster.of(GROUP, "v1beta1", PLURAL)
        await metrics.patch("default", "one", {"value": "1000"})

        async def are_most() -> bool:
            return await cluster.replicas() == (10, 10)

        await cluster.survive(are_most)
        assert set(asked) <= {1, 3, 6, 10}, "more than doubled, or more than allowed"
        assert asked == sorted(asked), "fewer though the queue was long"
        await metrics.patch("default", "one", {"value": "5"})

        async def is_one() -> bool:
            return await cluster.replicas() == (1, 1)

        await cluster.survive(is_one)
        assert set(asked) <= {1, 3, 6, 10}, asked
