"""The scheduler and simulated nodes on a real server, through its loopback client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.endpoints.query import Query
from pilothouse.machinery import errors
from pilothouse.machinery.supervision import Supervisor
from pilothouse.simulation.nodes.pool import NodePool, PoolSettings
from pilothouse.simulation.nodes.streams import SimulatedStreams
from pilothouse.simulation.nodes.template import read_template
from pilothouse.simulation.scheduler.scheduler import Scheduler
from pilothouse.testing.in_process import InProcessServer

SLICE = {"kind": "ResourceSlice", "spec": {"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}]}}


class Living:
    """A server with two nodes and a scheduler."""

    def __init__(self, server: InProcessServer, clients: LoopbackClients, streams: SimulatedStreams) -> None:
        self.server, self.streams = server, streams
        self.pods = clients.api_server().of("", "v1", "pods")
        self.nodes = clients.api_server().of("", "v1", "nodes")
        self.claims = clients.api_server().of("resource.k8s.io", "v1", "resourceclaims")
        self.classes = clients.api_server().of("resource.k8s.io", "v1", "deviceclasses")
        self.events = clients.api_server().of("events.k8s.io", "v1", "events")

    async def pod(self, name: str, **spec: Any) -> None:
        annotations = spec.pop("annotations", {})
        containers = spec.pop("containers", [{"name": "c", "image": "nginx"}])
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        await self.pods.create({"metadata": metadata, "spec": {"containers": containers, **spec}})

    async def wait(self, name: str, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                pod = await self.pods.get("default", name)
                if condition(pod):
                    return pod
                await asyncio.sleep(0.02)


@pytest.fixture
async def living() -> AsyncIterator[Living]:
    async with InProcessServer(
        "--disable-admission-plugins=ServiceAccount", "--authorization-mode=Node,RBAC"
    ) as server:
        process = server.process
        clients = LoopbackClients(process.cluster.handler)
        supervisor = Supervisor("test")
        informers = InformerFactory(lambda gvr: built_in_source(process.cluster.storage, gvr), supervisor)
        Scheduler(clients.scheduler(), informers, supervisor).start()
        settings, streams = PoolSettings(2, template=read_template([SLICE]), run_pods=True), SimulatedStreams()
        await NodePool(settings, clients, informers, supervisor, streams).start()
        informers.start()
        for name in ("node-1", "node-2"):  # new nodes are tainted until the node lifecycle controller finds them ready
            await clients.api_server().of("", "v1", "nodes").patch("", name, {"spec": {"taints": None}})
        try:
            yield Living(server, clients, streams)
        finally:
            await supervisor.close()


def phase(pod: dict[str, Any]) -> str:
    return str(pod["status"].get("phase"))


async def test_a_pod_runs_and_goes(living: Living) -> None:
    await living.pod("p")
    pod = await living.wait("p", lambda pod: phase(pod) == "Running")
    assert pod["spec"]["nodeName"] in ("node-1", "node-2")
    assert {each["type"]: each["status"] for each in pod["status"]["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert pod["status"]["podIP"] and pod["status"]["containerStatuses"][0]["ready"]
    await living.pods.delete("default", "p")
    async with asyncio.timeout(60):
        while True:
            try:
                await living.pods.get("default", "p")
            except errors.NotFound:
                break
            await asyncio.sleep(0.02)


async def test_batch_pods_end(living: Living) -> None:
    await living.pod("good", restartPolicy="Never", containers=[{"name": "c", "image": "i", "command": ["true"]}])
    await living.pod("bad", restartPolicy="Never", containers=[{"name": "c", "image": "i", "command": ["false"]}])
    await living.wait("good", lambda pod: phase(pod) == "Succeeded")
    pod = await living.wait("bad", lambda pod: phase(pod) == "Failed")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


async def test_a_crash_loop(living: Living) -> None:
    await living.pod("p", containers=[{"name": "c", "image": "i", "command": ["false"]}])
    pod = await living.wait(
        "p", lambda pod: "waiting" in pod["status"].get("containerStatuses", [{}])[0].get("state", {})
    )
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] in ("CrashLoopBackOff", "ContainerCreating")


async def test_no_room(living: Living) -> None:
    resources = {"requests": {"cpu": "1000"}}
    await living.pod("p", containers=[{"name": "c", "image": "i", "resources": resources}])
    pod = await living.wait("p", lambda pod: pod["status"].get("conditions"))
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"] == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


async def test_preemption(living: Living) -> None:
    one = {"requests": {"cpu": "16"}}
    for name in ("a", "b"):
        await living.pod(name, containers=[{"name": "c", "image": "i", "resources": one}])
        await living.wait(name, lambda pod: phase(pod) == "Running")
    await living.pod(
        "p", priorityClassName="system-node-critical", containers=[{"name": "c", "image": "i", "resources": one}]
    )
    await living.wait("p", lambda pod: phase(pod) == "Running")
    left = [pod["metadata"]["name"] async for pod in living.pods.items("default")]
    assert len(left) == 2 and "p" in left


async def test_pods_get_devices_while_there_are_any(living: Living) -> None:
    await living.classes.create({"metadata": {"name": "gpu"}, "spec": {}})
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    wanted = {"spec": {"devices": devices}}
    for number in range(3):
        spec = {"resourceClaims": [{"name": "c", "resourceClaimName": f"claim-{number}"}]}
        await living.pod(f"p{number}", **spec)
    for number in range(2):
        await living.claims.create({"metadata": {"name": f"claim-{number}", "namespace": "default"}, **wanted})
    placed = [await living.wait(f"p{number}", lambda pod: phase(pod) == "Running") for number in range(2)]
    assert {pod["spec"]["nodeName"] for pod in placed} == {"node-1", "node-2"}
    for pod in placed:
        claim = await living.claims.get("default", pod["spec"]["resourceClaims"][0]["resourceClaimName"])
        assert claim["status"]["reservedFor"] == [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        ]
        [result] = claim["status"]["allocation"]["devices"]["results"]
        assert (result["driver"], result["device"]) == ("gpu.example.com", "gpu-0")
        assert result["pool"] == pod["spec"]["nodeName"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    third = await living.pods.get("default", "p2")
    assert not third["status"].get("conditions"), "a pod whose claim is not there is not even tried"
    await living.claims.create({"metadata": {"name": "claim-2", "namespace": "default"}, **wanted})
    pod = await living.wait("p2", lambda pod: pod["status"].get("conditions"))
    assert pod["status"]["conditions"][0]["message"] == (
        "0/2 nodes are available: 2 cannot allocate all claims. preemption: "
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    claim = await living.claims.get("default", "claim-0")
    claim["status"] = {}
    await living.claims.update_status(claim)
    await living.wait("p2", lambda pod: phase(pod) == "Running")


async def read_log(living: Living, pod: str) -> str:
    log = living.streams.log_of("default", pod, "c")
    assert log is not None
    return b"".join([piece async for piece in log.read(Query(""))]).decode()


async def test_commands_that_really_run(living: Living) -> None:
    run = {"simulation.pilothouse.dev/run": "true"}
    script = "echo $GREETING from $(hostname 2>/dev/null >/dev/null; echo $HOSTNAME); exit 3"
    env = [{"name": "WHO", "value": "all"}, {"name": "GREETING", "value": "hello $(WHO)"}]
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "env": env}
    await living.pod("ends", annotations=run, containers=[container], restartPolicy="Never")
    pod = await living.wait("ends", lambda pod: phase(pod) == "Failed")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert await read_log(living, "ends") == "hello all from ends\n"
    script = "trap 'echo bye; exit 0' TERM; echo here; while true; do sleep 0.05; done"
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script]}
    await living.pod("stays", annotations=run, containers=[container])
    await living.wait("stays", lambda pod: phase(pod) == "Running")
    async with asyncio.timeout(60):
        while await read_log(living, "stays") != "here\n":
            await asyncio.sleep(0.02)
    await living.pods.delete("default", "stays")
    async with asyncio.timeout(60):
        while any(pod["metadata"]["name"] == "stays" for pod in (await living.pods.list("default"))["items"]):
            await asyncio.sleep(0.02)


async def test_the_kubelet_has_the_last_word_on_its_pods(living: Living) -> None:
    await living.pod("p")
    await living.wait("p", lambda pod: phase(pod) == "Running")
    for type in ("Ready", "PodScheduled"):
        status = {"conditions": [{"type": type, "status": "False", "reason": "SaidByOthers"}]}
        await living.pods.patch("default", "p", {"status": status}, "strategic", subresource="status")
        await living.wait("p", lambda pod: all(each["status"] == "True" for each in pod["status"]["conditions"]))
