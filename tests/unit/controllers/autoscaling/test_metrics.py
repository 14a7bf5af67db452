"""The metrics APIs, answered by a handler that stands for the servers behind the aggregator."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.authn.loopback import API_SERVER
from pilothouse.controllers.autoscaling.metrics import Metrics
from pilothouse.controllers.autoscaling.proposals import NoProposal, Reading, Tolerances
from pilothouse.controllers.autoscaling.sources import MetricFailed, MetricSources, Target
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import labels
from pilothouse.machinery.times import Instant
from pilothouse.net.messages import Response

NOW = Instant(1_790_000_000, 0)


def metrics(answers: dict[str, Any]) -> Metrics:
    """Answers by path; discovery knows services and custom metrics."""

    def group(name: str, version: str, resource: str, kind: str) -> dict[str, Any]:
        listed = {"resource": resource, "scope": "Namespaced", "verbs": ["get"], "responseKind": {"kind": kind}}
        return {"metadata": {"name": name}, "versions": [{"version": version, "resources": [listed]}]}

    custom = group("custom.metrics.k8s.io", "v1beta2", "services/hits", "MetricValueList")
    found = {"/api": {"items": [group("", "v1", "services", "Service")]}, "/apis": {"items": [custom]}} | answers

    async def handle(request: APIRequest) -> Response:
        answer = found.get(request.path)
        status = 404 if answer is None else 200
        return Response(status, orjson.dumps(answer or {"code": 404}))

    return Metrics(LoopbackClients(handle).as_user(API_SERVER, "test"))


def value(amount: str, name: str = "") -> dict[str, Any]:
    return {"describedObject": {"name": name}, "value": amount, "timestamp": "2026-09-21T00:00:00Z"}


EVERYTHING = labels.parse("")
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"


def target(replicas: int = 2) -> Target:
    pods = [
        {
            "metadata": {"name": f"p{number}"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for number in range(replicas)
    ]
    return Target("default", replicas, replicas, EVERYTHING, pods)


async def test_pods() -> None:
    items = [value("300", "p0"), value("100", "p1")]
    source = MetricSources(metrics({f"{CUSTOM}/pods/*/hits": {"items": items}}))
    wanted = {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "100"}}
    found = await source.propose({"type": "Pods", "pods": wanted}, target(), Tolerances(), NOW)
    assert (found.replicas, found.metric) == (4, "pods metric hits")
    assert found.status == {"type": "Pods", "pods": {"metric": {"name": "hits"}, "current": {"averageValue": "200"}}}


@pytest.mark.parametrize(
    ("wanted", "replicas", "metric", "current"),
    [
        ({"type": "Value", "value": "100"}, 6, "Service metric hits", {"value": "300"}),
        ({"type": "AverageValue", "averageValue": "100"}, 3, "external metric hits(nil)", {"averageValue": "150"}),
    ],
)
async def test_objects(wanted: dict[str, str], replicas: int, metric: str, current: dict[str, str]) -> None:
    source = MetricSources(metrics({f"{CUSTOM}/services/web/hits": {"items": [value("300")]}}))
    about = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    asked = {"metric": {"name": "hits"}, "describedObject": about, "target": wanted}
    found = await source.propose({"type": "Object", "object": asked}, target(), Tolerances(), NOW)
    assert (found.replicas, found.metric) == (replicas, metric)
    assert found.status["object"] == {"describedObject": about, "metric": {"name": "hits"}, "current": current}


async def test_external_metrics_are_summed() -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue"
    source = MetricSources(metrics({path: {"items": [value("5"), value("2500m")]}}))
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]}
    asked = {"metric": {"name": "queue", "selector": selector}, "target": {"type": "Value", "value": "1"}}
    found = await source.propose({"type": "External", "external": asked}, target(), Tolerances(), NOW)
    assert found.replicas == 15
    assert found.metric == (
        "external metric queue(&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},})"
    )


async def test_containers() -> None:
    usage = [{"name": "c", "usage": {"cpu": "250m"}}, {"name": "d", "usage": {"cpu": "1"}}]
    item = {"metadata": {"name": "p"}, "timestamp": "2026-09-21T00:00:00Z", "window": "15s", "containers": usage}
    found = metrics({"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods": {"items": [item]}})
    assert await found.of_resource("cpu", "default", EVERYTHING, "c") == {"p": Reading(250, 1789948800.0, 15.0)}
    assert await found.of_resource("cpu", "default", EVERYTHING, "") == {"p": Reading(1250, 1789948800.0, 15.0)}
    assert await found.of_resource("memory", "default", EVERYTHING, "") == {}


async def test_what_is_not_there() -> None:
    found = metrics({f"{CUSTOM}/pods/*/hits": {"items": []}})
    with pytest.raises(NoProposal, match="no metrics returned from custom metrics API"):
        await found.of_pods("hits", "default", EVERYTHING, EVERYTHING)
    with pytest.raises(MetricFailed, match='unknown metric source type "Nonsense"'):
        await MetricSources(found).propose({"type": "Nonsense"}, target(), Tolerances(), NOW)
