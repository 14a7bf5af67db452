"""A node is greeted, watched, given up when nothing is heard of it, and missed when it is gone."""

from __future__ import annotations

from typing import Any

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.testing.running_controllers import RunningControllers

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": None}


def taints(node: dict[str, Any]) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or ()}


async def test_from_the_first_look_to_the_last() -> None:
    settings = ManagerSettings(node_monitor_period=0.05, node_monitor_grace=0.5)
    async with RunningControllers("node_lifecycle", "taint_eviction", settings=settings) as cluster:
        nodes, pods = cluster.of("", "v1", "nodes"), cluster.of("", "v1", "pods")
        await nodes.create({"metadata": {"name": "n"}, "status": {"conditions": [READY]}})
        event = await cluster.wait_event("default", "RegisteredNode", "n")
        assert event["message"] == "Node n event: Registered Node n in Controller"
        assert event["source"]["component"] == "node-controller"
        await cluster.wait(nodes, "", "n", lambda node: not taints(node))
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
        await pods.create({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await pods.patch("default", "p", {"status": ready}, "strategic", subresource="status")
        lost = await cluster.wait(nodes, "", "n", lambda node: node["status"]["conditions"][0]["status"] == "Unknown")
        assert lost["status"]["conditions"][0]["message"] == "Kubelet stopped posting node status."
        assert (await cluster.wait_event("default", "NodeNotReady", "n"))["message"] == (
            "Node n status is now: NodeNotReady"
        )
        unreachable = "node.kubernetes.io/unreachable"
        await cluster.wait(
            nodes, "", "n", lambda node: taints(node) == {(unreachable, "NoSchedule"), (unreachable, "NoExecute")}
        )
        await cluster.wait(
            pods,
            "default",
            "p",
            lambda pod: any(
                each["type"] == "Ready" and each["status"] == "False" for each in pod["status"]["conditions"]
            ),
        )
        await nodes.delete("", "n")
        event = await cluster.wait_event("default", "RemovingNode", "n")
        assert event["message"] == "Node n event: Removing Node n from Controller"
