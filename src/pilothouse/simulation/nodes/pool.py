"""All simulated nodes of a cluster: registered, kept alive, and their pods played.

    node leases   renewed every ten seconds, spread over that time, so that a thousand nodes are no burst
    node status   written anew every five minutes, and when somebody else made the node look unwell
    pods          one work queue for all nodes; each pod is played by the kubelet of its node
    events        a few at a time of all nodes together: that pods get ready comes first

A node that a user deletes stays away until the server starts again; what runs on others is none of our business.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pilothouse.controllers.runtime.client import Client, LoopbackClients
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.events import EventBroadcaster
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_micro_time
from pilothouse.machinery.user import NODE_PREFIX, NODES_GROUP, User
from pilothouse.simulation.nodes.addresses import PodAddresses, node_address
from pilothouse.simulation.nodes.behaviour import Rule
from pilothouse.simulation.nodes.kubelet import SimulatedKubelet
from pilothouse.simulation.nodes.local_processes import LocalProcesses
from pilothouse.simulation.nodes.streams import SimulatedStreams
from pilothouse.simulation.nodes.template import Template, conditions, make_node, make_slice

logger = logging.getLogger(__name__)
_LEASES: Final = "kube-node-lease"
_LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_STATUS_SECONDS: Final = 300.0
_SLICES: Final = 10
_KUBELET_PORT: Final = 10250
_AT_ONCE: Final = 32
_EVENTS_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How many nodes there are, what they look like, and how containers on them behave."""

    count: int = 1
    name: str = "node"
    template: Template = field(default_factory=Template)
    rules: Sequence[Rule] = ()
    workers: int = 64
    run_pods: bool = False
    """Whether pods may ask for their commands to be processes of this machine."""

    def names(self) -> list[str]:
        """The names of the nodes, in order."""
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class NodePool:
    """See the module's docstring."""

    def __init__(
        self,
        settings: PoolSettings,
        clients: LoopbackClients,
        informers: InformerFactory,
        supervisor: Supervisor,
        streams: SimulatedStreams,
        *,
        clock: Clock = SYSTEM,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._settings, self._clients, self._supervisor, self._clock, self._rng = (
            settings,
            clients,
            supervisor,
            clock,
            rng,
        )
        self._streams = streams
        self._numbers = {name: number for number, name in enumerate(settings.names())}
        self._nodes = informers.of("", "v1", "nodes")
        self._pods = informers.of("", "v1", "pods")
        self._by_name = {name: self._client(name) for name in self._numbers}
        self.kubelets: dict[str, SimulatedKubelet] = {}
        self._event_turns = asyncio.Semaphore(_EVENTS_AT_ONCE)
        self._slice = 0
        self._processes = LocalProcesses(supervisor, clock) if settings.run_pods else None
        self._since_status = dict.fromkeys(self._numbers, 0.0)
        self._controller: Controller[Key] = Controller(
            "simulated kubelets", self._sync, workers=settings.workers, wait_for=[self._nodes, self._pods], clock=clock
        )

        self._unwell: Controller[str] = Controller("status of simulated nodes", self._say_well, clock=clock)

    def _client(self, name: str) -> Client:
        return self._clients.as_user(User(NODE_PREFIX + name, groups=(NODES_GROUP,)), "kubelet")

    async def start(self) -> None:
        """Register the nodes and begin to play pods."""
        await _for_each(self._numbers, self._register)
        self._nodes.add_handler(on_update=self._node_changed, name="simulated nodes")
        self._pods.add_handler(self._pod_seen, lambda old, new: self._pod_seen(new), self._pod_gone, name="kubelets")
        self._controller.start(self._supervisor)
        self._unwell.start(self._supervisor)
        seconds = _RENEW_SECONDS / _SLICES
        Periodic("node leases", self._keep_alive, seconds, clock=self._clock).start(self._supervisor)

    async def _register(self, name: str) -> None:
        address = node_address(self._numbers[name])
        template = self._settings.template.node(self._numbers[name])
        node = make_node(name, address, _KUBELET_PORT, template, self._clock.now())
        nodes = self._by_name[name].of("", "v1", "nodes")
        try:
            await self._publish_devices(await nodes.create(node))
        except errors.AlreadyExists:
            known = await nodes.get("", name)
            status = node["status"] | {
                "conditions": conditions(known["status"].get("conditions") or [], self._clock.now())
            }
            await nodes.patch("", name, {"status": status}, "strategic", subresource="status")
            await self._publish_devices(known)
        self._since_status[name] = self._clock.monotonic()

    async def _publish_devices(self, node: Object) -> None:
        """What the drivers of a node would publish; slices that are there already stay as they are."""
        templates = self._settings.template.slices
        if not templates:
            return
        client = self._clients.api_server().of("resource.k8s.io", "v1", "resourceslices")
        drivers = [each["spec"]["driver"] for each in templates]
        for number, each in enumerate(templates):
            try:
                await client.create(make_slice(each, number, drivers.count(drivers[number]), node))
            except errors.AlreadyExists:
                continue

    # Keeping nodes alive

    async def _keep_alive(self) -> None:
        """Renew the leases of some nodes; all have had their turn after as many rounds as there are slices."""
        names = list(self._numbers)[self._slice :: _SLICES]
        self._slice = (self._slice + 1) % _SLICES
        await _for_each(names, self._keep_one_alive)

    async def _keep_one_alive(self, name: str) -> None:
        node = self._nodes.lister.get("", name)
        if node is not None:
            await self._renew(name, node)
            if self._clock.monotonic() - self._since_status[name] >= _STATUS_SECONDS:
                await self._write_status(name, node)

    async def _renew(self, name: str, node: Object) -> None:
        leases = self._by_name[name].of("coordination.k8s.io", "v1", "leases")
        at = format_micro_time(self._clock.now())
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": at}
        try:
            await leases.patch(_LEASES, name, {"spec": spec})
        except errors.NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            metadata = {"name": name, "namespace": _LEASES, "ownerReferences": [owner]}
            await leases.create({"metadata": metadata, "spec": spec})

    async def _write_status(self, name: str, node: Object) -> None:
        status = {"conditions": conditions(node["status"].get("conditions") or [], self._clock.now())}
        try:
            await (
                self._by_name[name]
                .of("", "v1", "nodes")
                .patch("", name, {"status": status}, "strategic", subresource="status")
            )
        except errors.NotFound:
            return
        self._since_status[name] = self._clock.monotonic()

    def _node_changed(self, old: Object, new: Object) -> None:
        """Somebody else said that the node is unwell: its kubelet says that it is not."""
        name = new["metadata"]["name"]
        if name not in self._numbers:
            return
        ready = next((each for each in new["status"].get("conditions") or () if each["type"] == "Ready"), None)
        if ready is not None and ready["status"] == "Unknown":
            self._unwell.queue.add(name)

    async def _say_well(self, name: str) -> None:
        node = self._nodes.lister.get("", name)
        if node is not None:
            await self._write_status(name, node)

    # Pods

    def _pod_seen(self, pod: Object) -> None:
        if pod["spec"].get("nodeName") in self._numbers:
            self._controller.queue.add(key_of(pod))

    def _pod_gone(self, pod: Object) -> None:
        kubelet = self.kubelets.get(pod["spec"].get("nodeName") or "")
        if kubelet is not None:
            kubelet.forget(pod["metadata"]["uid"])

    async def _sync(self, key: Key) -> float | None:
        pod = self._pods.lister.get(*key)
        if pod is None:
            return None
        name = pod["spec"].get("nodeName") or ""
        node = self._nodes.lister.get("", name)
        if name not in self._numbers or node is None:
            return None
        return await self._kubelet_of(name, node).sync(pod)

    def _kubelet_of(self, name: str, node: Object) -> SimulatedKubelet:
        """The kubelet of a node, made when its first pod comes: the node has its range of addresses by then."""
        kubelet = self.kubelets.get(name)
        if kubelet is None:
            number, client = self._numbers[name], self._by_name[name]
            kubelet = self.kubelets[name] = SimulatedKubelet(
                name,
                node_address(number),
                PodAddresses(node["spec"].get("podCIDR") or "", number),
                client,
                EventBroadcaster(client, self._supervisor, self._clock, self._event_turns).recorder("kubelet", name),
                self._clock,
                self._streams,
                self._settings.rules,
                self._rng,
                self._processes,
                self._pod_seen,
            )
        return kubelet


async def _for_each(names: Iterable[str], work: Callable[[str], Awaitable[None]]) -> None:
    """Do the same for all, some at once. What fails for one is raised when all had their turn."""
    left = list(names)
    failures: list[BaseException] = []
    while left:
        batch, left = left[:_AT_ONCE], left[_AT_ONCE:]
        results = await asyncio.gather(*map(work, batch), return_exceptions=True)
        failures += [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise failures[0]
