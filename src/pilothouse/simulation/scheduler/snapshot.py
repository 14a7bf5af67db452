"""The cluster as the scheduler knows it: nodes, the pods on each, and what these take up.

Pods are added when they are bound, or assumed to be: a pod for which a node was chosen takes up room from that moment
on, and gives it back if binding fails. Sums are kept as pods come and go, never counted anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.requests import CPU, MEMORY, PODS, Amounts, HostPort, amounts

_MOST_COUNTS: Final = 64


class NodeInfo:
    """One node and the pods on it. ``node`` is None while only pods of it are known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Object | None = None
        self.labels: Mapping[str, str] = {}
        self.taints: list[Object] = []
        self.unschedulable = False
        self.allocatable: Amounts = {}
        self.most_pods = self.all_cpu = self.all_memory = 0
        """How many pods fit by number; what of CPU and memory there is for pods."""
        self.requested: Amounts = {}
        self.assumed_cpu = self.assumed_memory = 0
        self.pods: dict[str, PodInfo] = {}
        self.ports: dict[HostPort, int] = {}
        self.images: dict[str, int] = {}

    def set_node(self, node: Object) -> None:
        """Take over the node's newest state."""
        spec, status = node.get("spec") or {}, node.get("status") or {}
        self.node = node
        self.labels = node["metadata"].get("labels") or {}
        self.taints = spec.get("taints") or []
        self.unschedulable = bool(spec.get("unschedulable"))
        self.allocatable = amounts(status.get("allocatable"))
        self.most_pods = self.allocatable.get(PODS, 0)
        self.all_cpu, self.all_memory = self.allocatable.get(CPU, 0), self.allocatable.get(MEMORY, 0)
        images = status.get("images") or ()
        self.images = {name: image.get("sizeBytes", 0) for image in images for name in image.get("names") or ()}

    def add(self, pod: PodInfo) -> None:
        """One more pod."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """One pod less."""
        del self.pods[pod.uid]
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        cpu, memory = pod.assumed
        self.assumed_cpu += sign * cpu
        self.assumed_memory += sign * memory
        for port in pod.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]


class MatchCounts:
    """How many pods of a namespace match a selector on each node; those on their way out do not count."""

    def __init__(self, namespace: str, selector: labels.Selector) -> None:
        self._namespace, self._selector = namespace, selector
        self.by_node: dict[str, int] = {}

    def count(self, pod: PodInfo, node_name: str, sign: int) -> None:
        """A pod came to the node or went."""
        if pod.namespace == self._namespace and not pod.is_terminating and self._selector.matches(pod.labels):
            self.by_node[node_name] = self.by_node.get(node_name, 0) + sign


class Snapshot:
    """All nodes with their pods."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._node_of: dict[str, str] = {}
        self._counts: OrderedDict[tuple[str, labels.Selector], MatchCounts] = OrderedDict()
        self._known: list[NodeInfo] | None = None
        self._have_images: set[str] = set()
        self._with_affinity: dict[str, tuple[PodInfo, NodeInfo]] = {}
        self.terms = 0
        """How many terms the pods on nodes have that are about others."""

    @property
    def pod_count(self) -> int:
        """How many pods are on nodes."""
        return len(self._node_of)

    @property
    def has_images(self) -> bool:
        """Whether any node has told which images it has."""
        return bool(self._have_images)

    @property
    def nodes(self) -> list[NodeInfo]:
        """The nodes that exist."""
        if self._known is None:
            self._known = [info for info in self._nodes.values() if info.node is not None]
        return self._known

    def node(self, name: str) -> NodeInfo | None:
        """A node that exists."""
        info = self._nodes.get(name)
        return info if info is not None and info.node is not None else None

    def set_node(self, node: Object) -> None:
        """A node came or changed."""
        info = self._info(node["metadata"]["name"])
        if info.node is None:
            self._known = None
        info.set_node(node)
        if info.images:
            self._have_images.add(info.name)
        else:
            self._have_images.discard(info.name)

    def remove_node(self, name: str) -> None:
        """A node went; its pods may go later."""
        info = self._nodes.get(name)
        if info is not None:
            info.node = None
            self._known = None
            self._have_images.discard(name)
            self._forget_empty(info)

    def add_pod(self, pod: PodInfo, node_name: str) -> None:
        """A pod is on a node, or assumed to be. What was known of it before is replaced."""
        self.remove_pod(pod.uid)
        info = self._info(node_name)
        info.add(pod)
        if pod.terms:
            self._with_affinity[pod.uid] = (pod, info)
            self.terms += pod.terms
        self._node_of[pod.uid] = node_name
        for counts in self._counts.values():
            counts.count(pod, node_name, 1)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is on no node any more; what was known of it."""
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return None
        info = self._nodes[node_name]
        pod = info.pods[uid]
        info.remove(pod)
        if self._with_affinity.pop(uid, None) is not None:
            self.terms -= pod.terms
        for counts in self._counts.values():
            counts.count(pod, node_name, -1)
        self._forget_empty(info)
        return pod

    def node_name_of(self, uid: str) -> str | None:
        """The node that a pod is on."""
        return self._node_of.get(uid)

    def pods(self) -> Iterator[tuple[PodInfo, NodeInfo]]:
        """All pods on nodes that exist."""
        for info in self.nodes:
            for pod in info.pods.values():
                yield pod, info

    def pods_with_affinity(self) -> Iterator[tuple[PodInfo, NodeInfo]]:
        """All pods that say anything of other pods."""
        for pod, info in self._with_affinity.values():
            if info.node is not None:
                yield pod, info

    def matching(self, namespace: str, selector: labels.Selector) -> Mapping[str, int]:
        """How many pods match, by node. Selectors that are asked for again cost nothing."""
        key = (namespace, selector)
        counts = self._counts.get(key)
        if counts is None:
            counts = MatchCounts(namespace, selector)
            for uid, node_name in self._node_of.items():
                counts.count(self._nodes[node_name].pods[uid], node_name, 1)
            self._counts[key] = counts
            if len(self._counts) > _MOST_COUNTS:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(key)
        return counts.by_node

    def _info(self, name: str) -> NodeInfo:
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(name)
        return info

    def _forget_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            self._nodes.pop(info.name, None)
