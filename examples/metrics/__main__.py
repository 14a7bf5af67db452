"""metrics.k8s.io without an agent on any node: what pods use is computed from what they ask for.

Nothing is stored. Every request lists pods and nodes of the main API server and makes metrics of them, so that
``kubectl top`` and autoscalers have something to go by where containers do not really run.

    python -m examples.metrics --secure-port=8443 --kubeconfig=main.kubeconfig
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pilothouse.library import APIServer, Computed, Group, Kind, Main, Object, Query, Version, errors, parse_quantity

WINDOW = "30s"
IDLE = {"cpu": "2m", "memory": "8Mi"}
"""What a container is taken to ask for that asks for nothing."""


@dataclass
class ContainerMetrics:
    """What a container uses."""

    name: str
    usage: dict[str, str]


@dataclass
class PodMetrics:
    """What the containers of a pod use."""

    timestamp: datetime
    window: str
    containers: list[ContainerMetrics]


@dataclass
class NodeMetrics:
    """What a node uses."""

    timestamp: datetime
    window: str
    usage: dict[str, str]


def main_of(query: Query) -> Main:
    if query.main is None:
        raise errors.unavailable("there is no API server to ask for pods")
    return query.main


async def pod_metrics(query: Query) -> list[Object]:
    where = f"/namespaces/{query.namespace}" if query.namespace else ""
    pods = await main_of(query).list(f"/api/v1{where}/pods?fieldSelector=status.phase%3DRunning")
    return [metrics_of(pod, containers=[used_by(each) for each in pod["spec"]["containers"]]) for pod in pods]


def used_by(container: Object) -> Object:
    return {"name": container["name"], "usage": usage([container])}


async def node_metrics(query: Query) -> list[Object]:
    pods = await main_of(query).list("/api/v1/pods?fieldSelector=status.phase%3DRunning")
    nodes = await main_of(query).list("/api/v1/nodes")
    return [metrics_of(node, usage=usage(containers_on(node["metadata"]["name"], pods))) for node in nodes]


def containers_on(node: str, pods: list[Object]) -> Iterator[Object]:
    return (each for pod in pods if pod["spec"].get("nodeName") == node for each in pod["spec"]["containers"])


def usage(containers: Iterable[Object]) -> dict[str, str]:
    """Half of what containers ask for."""
    asked = [{**IDLE, **((each.get("resources") or {}).get("requests") or {})} for each in containers]
    cpu = sum(parse_quantity(each["cpu"]).milli_value() for each in asked)
    memory = sum(parse_quantity(each["memory"]).value() for each in asked)
    return {"cpu": f"{cpu // 2}m", "memory": f"{memory // 2048}Ki"}


def metrics_of(obj: Object, **measured: object) -> Object:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = {key: obj["metadata"][key] for key in ("name", "namespace", "labels") if key in obj["metadata"]}
    return {"metadata": {**kept, "creationTimestamp": now}, "timestamp": now, "window": WINDOW, **measured}


PODS = Kind(
    name="PodMetrics",
    plural="pods",
    singular="pod",
    versions=[Version(name="v1beta1", schema=PodMetrics)],
    computed=Computed(pod_metrics),
)
NODES = Kind(
    name="NodeMetrics",
    plural="nodes",
    singular="node",
    namespaced=False,
    versions=[Version(name="v1beta1", schema=NodeMetrics)],
    computed=Computed(node_metrics),
)
SERVER = APIServer(name="metrics", groups=[Group("metrics.k8s.io", [PODS, NODES])])

if __name__ == "__main__":
    raise SystemExit(SERVER.run())
