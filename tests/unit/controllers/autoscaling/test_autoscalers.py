"""Autoscalers on a real server. Custom resources stand for the metrics APIs that other servers would serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.machinery import errors
from pilothouse.machinery.times import now
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.running_controllers import RunningControllers


def definition(group: str, plural: str, kind: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    annotations = {"api-approved.kubernetes.io": "unapproved, for tests"}
    return {
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


class Scaled(RunningControllers):
    """A cluster with a replica set and an autoscaler of it, and time that the test lets pass."""

    async def prepare(self, metrics: list[dict[str, Any]], **spec: Any) -> None:
        labels = {"app": "web"}
        containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        metadata = {"name": "web", "namespace": "default"}
        wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        await self.of("apps", "v1", "replicasets").create({"metadata": metadata, "spec": wanted})
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
        spec = {"maxReplicas": 10, "scaleTargetRef": reference, "metrics": metrics, **spec}
        await self.of("autoscaling", "v2", "horizontalpodautoscalers").create({"metadata": metadata, "spec": spec})

    async def pod(self, name: str) -> None:
        pods = self.of("", "v1", "pods")
        metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
        await pods.create({"metadata": metadata, "spec": {"containers": containers}})
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        status = {"phase": "Running", "startTime": "2020-01-01T00:00:00Z", "conditions": [condition]}
        await pods.patch("default", name, {"status": status}, subresource="status")

    async def serve(self, group: str, plural: str, kind: str, *items: dict[str, Any]) -> None:
        await self.of("apiextensions.k8s.io", "v1", "customresourcedefinitions").create(definition(group, plural, kind))
        client = self.of(group, "v1beta1", plural)
        for item in items:
            async with asyncio.timeout(60):
                while True:
                    try:
                        await client.create({"apiVersion": f"{group}/v1beta1", "kind": kind, **item})
                        break
                    except errors.NotFound:
                        await asyncio.sleep(0.01)

    async def scale_is(self, replicas: int) -> dict[str, Any]:
        sets = self.of("apps", "v1", "replicasets")
        await self.wait(sets, "default", "web", lambda obj: obj["spec"]["replicas"] == replicas)
        client = self.of("autoscaling", "v2", "horizontalpodautoscalers")
        return await self.wait(
            client, "default", "web", lambda obj: (obj.get("status") or {}).get("desiredReplicas") == replicas
        )


def says(autoscaler: dict[str, Any]) -> dict[str, tuple[str, str]]:
    conditions = autoscaler["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


@pytest.fixture
async def cluster() -> AsyncIterator[Scaled]:
    async with Scaled("autoscaling", clock=FakeClock()) as running:
        yield running


async def test_more_for_busy_pods(cluster: Scaled) -> None:
    for name in ("a", "b"):
        await cluster.pod(name)
    used = [
        {
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "timestamp": now(),
            "window": "30s",
            "containers": [{"name": "c", "usage": {"cpu": "800m"}}],
        }
        for name in ("a", "b")
    ]
    await cluster.serve("metrics.k8s.io", "pods", "PodMetrics", *used)
    sets = cluster.of("apps", "v1", "replicasets")
    await cluster.prepare([CPU])
    autoscaler = await cluster.scale_is(4)
    assert says(autoscaler) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
        "ScaledToZero": ("False", "NotScaledToZero"),
    }
    current = {"averageUtilization": 80, "averageValue": "800m"}
    assert autoscaler["status"]["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    ]
    event = await cluster.wait_event("default", "SuccessfulRescale", "web")
    assert event["message"] == ("New size: 4; reason: cpu resource utilization (percentage of request) above target")
    assert (await sets.get("default", "web"))["spec"]["replicas"] == 4


async def test_without_metrics(cluster: Scaled) -> None:
    await cluster.pod("a")
    await cluster.prepare([CPU])
    event = await cluster.wait_event("default", "FailedGetResourceMetric", "web")
    assert event["message"] == (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource "
        "metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
    )
    event = await cluster.wait_event("default", "FailedComputeMetricsReplicas", "web")
    assert event["message"].startswith(
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to "
    )


async def test_a_queue_outside(cluster: Scaled) -> None:
    item = {"metadata": {"name": "one", "namespace": "default"}, "metricName": "queue", "value": "30"}
    await cluster.serve("external.metrics.k8s.io", "queue", "ExternalMetricValue", item)
    target = {"type": "AverageValue", "averageValue": "10"}
    await cluster.prepare([{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}])
    autoscaler = await cluster.scale_is(3)
    assert says(autoscaler)["AbleToScale"] == ("True", "SucceededRescale")


async def test_what_cannot_be_scaled(cluster: Scaled) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "absent"}
    await cluster.prepare([CPU], scaleTargetRef=reference)
    event = await cluster.wait_event("default", "FailedGetScale", "web")
    assert event["message"] == 'replicasets.apps "absent" not found'


async def test_limits_come_first(cluster: Scaled) -> None:
    await cluster.prepare([CPU], minReplicas=3)
    await cluster.scale_is(3)
    event = await cluster.wait_event("default", "SuccessfulRescale", "web")
    assert event["message"] == "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
