"""Nodes that say nothing any more, and taints that follow the conditions of nodes.

    lease or status of a node is older than the grace period ─► its conditions become Unknown, its pods unready
    condition ─► taint NoSchedule (not ready, unreachable, pressure, network unavailable; cordoned)
    Ready is not true ─► taint NoExecute, by which pods are evicted after what they tolerate

How old a lease is, is measured from when its change was seen, by our own clock.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import attempt_all
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.indexer import PODS_BY_NODE, Key, copy_of, key_of
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time

_NAME: Final = "node-controller"
_LEASES: Final = "kube-node-lease"
_PREFIX: Final = "node.kubernetes.io/"
_TAINTS: Final = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
    ("PIDPressure", "True"): "pid-pressure",
}
_OWN: Final = frozenset(_PREFIX + each for each in (*_TAINTS.values(), "unschedulable"))
_EVICTING: Final = frozenset(_PREFIX + each for each in ("not-ready", "unreachable"))
_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def start(context: ControllerContext) -> None:
    """Start the node lifecycle controller."""
    NodeLifecycle(context).start(context.supervisor)


class NodeLifecycle:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_NAME)
        self._clock, self._settings = context.clock, context.settings
        self._nodes = context.informers.of("", "v1", "nodes")
        self._leases = context.informers.of("coordination.k8s.io", "v1", "leases", _LEASES)
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_NODE)
        self._node_client, self._pod_client = client.of("", "v1", "nodes"), client.of("", "v1", "pods")
        self._events = context.recorder(_NAME, _NAME)
        self._seen: dict[str, tuple[str, float]] = {}
        self._known: dict[str, Object] = {}
        self._tainting: Controller[Key] = Controller(
            "node-lifecycle-controller", self._taint, workers=8, wait_for=[self._nodes], clock=context.clock
        )
        self._monitoring = Periodic(
            "node health", self._monitor, context.settings.node_monitor_period, clock=context.clock
        )
        self._nodes.add_handler(self._node_seen, lambda old, new: self._node_seen(new), self._node_gone, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to watch nodes."""
        self._tainting.start(supervisor)
        self._monitoring.start(supervisor)

    def _node_seen(self, node: Object) -> None:
        self._tainting.queue.add(key_of(node))

    def _node_gone(self, node: Object) -> None:
        self._seen.pop(node["metadata"]["name"], None)

    # Taints

    async def _taint(self, key: Key) -> None:
        node = self._nodes.lister.get(*key)
        if node is None:
            return
        taints = wanted_taints(node, format_time(self._clock.now()))
        if taints == (node["spec"].get("taints") or []):
            return
        changed = copy_of(node)
        changed["spec"]["taints"] = taints
        try:
            await self._node_client.update(changed)
        except errors.NotFound:
            return

    # Health

    async def _monitor(self) -> None:
        if not (self._nodes.has_synced and self._leases.has_synced and self._pods.has_synced):
            return
        nodes = self._nodes.lister.list()
        self._tell_of_changes({node["metadata"]["name"]: node for node in nodes})
        await attempt_all(nodes, self._look_at)

    async def _look_at(self, node: Object) -> None:
        name = node["metadata"]["name"]
        mark = self._heartbeat(node)
        known = self._seen.get(name)
        now = self._clock.monotonic()
        if known is None or known[0] != mark:
            self._seen[name] = (mark, now)
        elif now - known[1] > self._settings.node_monitor_grace:
            await self._lose(node)
        if (condition_of(node, "Ready") or {}).get("status", "True") != "True":
            await self._mark_pods_unready(name)

    def _tell_of_changes(self, nodes: dict[str, Object]) -> None:
        """Nodes that came and went since the last look."""
        for name in nodes.keys() - self._known.keys():
            self._tell(nodes[name], "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        for name in self._known.keys() - nodes.keys():
            self._tell(self._known[name], "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
        self._known = nodes

    def _tell(self, node: Object, reason: str, message: str) -> None:
        metadata = {"name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
        self._events.event({"metadata": metadata}, "Normal", reason, message, kind="Node", api_version="v1")

    def _heartbeat(self, node: Object) -> str:
        """What changes for as long as the node's kubelet is alive."""
        lease = self._leases.lister.get(_LEASES, node["metadata"]["name"])
        renewed = "" if lease is None else str((lease.get("spec") or {}).get("renewTime"))
        reported = (condition_of(node, "Ready") or {}).get("lastHeartbeatTime")
        return f"{renewed} {reported}"

    async def _lose(self, node: Object) -> None:
        """Nothing was heard of the node: nobody knows what it is like."""
        changed = copy_of(node)
        conditions: list[dict[str, Any]] = changed["status"].setdefault("conditions", [])
        known = {each["type"]: each for each in conditions}
        at = format_time(self._clock.now())
        for type in _REPORTED:
            condition = known.get(type)
            if condition is None:
                conditions.append(
                    {
                        "type": type,
                        "status": "Unknown",
                        "reason": "NodeStatusNeverUpdated",
                        "message": "Kubelet never posted node status.",
                        "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
                        "lastTransitionTime": at,
                    }
                )
            elif condition["status"] != "Unknown":
                condition |= {
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": at,
                }
        if changed == node:
            return
        name = node["metadata"]["name"]
        self._tell(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        try:
            await self._node_client.update_status(changed)
        except (errors.NotFound, errors.Conflict):
            return

    async def _mark_pods_unready(self, node_name: str) -> None:
        for pod in self._pods.lister.by_index(PODS_BY_NODE, node_name):
            if (condition_of(pod, "Ready") or {}).get("status") != "True":
                continue
            metadata = pod["metadata"]
            at = format_time(self._clock.now())
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": at}
            patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
            try:
                await self._pod_client.patch(
                    metadata["namespace"], metadata["name"], patch, "strategic", subresource="status"
                )
            except (errors.NotFound, errors.Conflict):
                continue
            self._events.event(pod, "Warning", "NodeNotReady", "Node is not ready")


def wanted_taints(node: Object, now: str) -> list[dict[str, Any]]:
    """The taints of a node: those of others as they are, ours as its conditions say."""
    known: list[dict[str, Any]] = node["spec"].get("taints") or []
    wanted: dict[tuple[str, str], dict[str, Any]] = {}
    for condition in (node.get("status") or {}).get("conditions") or ():
        name = _TAINTS.get((condition["type"], condition["status"]))
        if name is not None:
            key = _PREFIX + name
            wanted[(key, "NoSchedule")] = {"key": key, "effect": "NoSchedule"}
            if key in _EVICTING:
                wanted[(key, "NoExecute")] = {"key": key, "effect": "NoExecute", "timeAdded": now}
    if node["spec"].get("unschedulable"):
        key = f"{_PREFIX}unschedulable"
        wanted[(key, "NoSchedule")] = {"key": key, "effect": "NoSchedule"}
    kept = []
    for taint in known:
        identity = (taint["key"], taint["effect"])
        if not _is_ours(taint):
            kept.append(taint)
        elif identity in wanted:
            kept.append(taint)
            del wanted[identity]
    return [*kept, *wanted.values()]


def _is_ours(taint: dict[str, Any]) -> bool:
    if taint["effect"] == "NoSchedule":
        return taint["key"] in _OWN
    return taint["effect"] == "NoExecute" and taint["key"] in _EVICTING
