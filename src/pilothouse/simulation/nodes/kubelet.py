"""One simulated node's kubelet: plays the pods that are bound to the node and reports what becomes of them.

Every pod is reconciled like any other key: what is due is done, the status is written if it changed, and the pod comes
back when something is due next. Time is the clock's, so that a test can let hours pass.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.events import EventRecorder
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.simulation.nodes.addresses import PodAddresses
from pilothouse.simulation.nodes.behaviour import BehaviourError, Rule
from pilothouse.simulation.nodes.container import Container
from pilothouse.simulation.nodes.local_processes import LocalProcesses
from pilothouse.simulation.nodes.pod import Happening, Moment, SimulatedPod
from pilothouse.simulation.nodes.streams import SimulatedStreams

logger = logging.getLogger(__name__)
_AT_ONCE: Final = 100
"""So many happenings are told in a millisecond or two."""
_CONTAINER: Final = 300
_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")


class SimulatedKubelet:
    """Plays the pods of one node. ``pods`` shows which, by uid."""

    def __init__(
        self,
        node_name: str,
        address: str,
        addresses: PodAddresses,
        client: Client,
        recorder: EventRecorder,
        clock: Clock,
        streams: SimulatedStreams,
        rules: Sequence[Rule] = (),
        rng: Callable[[], float] = random.random,
        processes: LocalProcesses | None = None,
        wake: Callable[[Object], None] = lambda pod: None,
    ) -> None:
        self.node_name, self.address = node_name, address
        self.pods: dict[str, SimulatedPod] = {}
        self._pods, self._recorder, self._clock = client.of("", "v1", "pods"), recorder, clock
        self._addresses, self._streams, self._rules, self._rng = addresses, streams, rules, rng
        self._processes, self._wake = processes, wake
        self._reported: dict[str, dict[str, Any]] = {}

    def _now(self) -> Moment:
        return self._clock.monotonic(), self._clock.now()

    def forget(self, uid: str) -> None:
        """The pod has gone."""
        played = self.pods.pop(uid, None)
        if played is not None:
            self._streams.gone(played.pod)
        if self._processes is not None:
            self._processes.forget(uid)
        self._reported.pop(uid, None)
        self._addresses.release(uid)

    async def sync(self, pod: Object) -> float | None:
        """Do what is due for a pod, and report it; after how many seconds something is due next."""
        uid = pod["metadata"]["uid"]
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed") and uid not in self.pods:
            if pod["metadata"].get("deletionTimestamp"):
                await self._finish(pod)
            return None
        played = self.pods.get(uid)
        now = self._now()
        weight = _weight(pod)
        if played is None:
            played = await self._take_up(pod, now, weight)
            if played is None:
                return None
        played.pod = pod
        due = await weighed(weight, played.advance, now)
        await self._tell_all(pod, played)
        await self._report(pod, played, now, weight)
        if played.has_stopped and pod["metadata"].get("deletionTimestamp"):
            await self._finish(pod)
            return None
        return None if due is None else max(0.0, due - self._clock.monotonic())

    async def _take_up(self, pod: Object, now: Moment, weight: int) -> SimulatedPod | None:
        try:
            played = await weighed(weight, SimulatedPod, pod, now, self._rules, self._rng)
            self._check_processes(played)
        except BehaviourError as error:
            text = f"simulation: {error}"
            self._tell(pod, Happening("Warning", "FailedSimulation", text), {})
            logger.warning("pod %s/%s: %s", pod["metadata"]["namespace"], pod["metadata"]["name"], text)
            return None
        self.pods[pod["metadata"]["uid"]] = played
        return played

    def _check_processes(self, played: SimulatedPod) -> None:
        for container in played.containers:
            if container.behaviour.run and self._processes is None:
                raise BehaviourError("setting run: start the server with --simulated-pods-run-locally to allow it")
            if container.behaviour.run and not container.spec.get("command"):
                raise BehaviourError(f"setting run: container {container.name} has no command")

    async def _tell_all(self, pod: Object, played: SimulatedPod) -> None:
        """Tell what has happened. Of thousands of containers that is much: others get their turn in between."""
        happenings = played.take_happenings()
        containers = {each.name: each for each in played.containers} if happenings else {}
        for position, happening in enumerate(happenings):
            self._tell(pod, happening, containers)
            self._play_process(pod, played, happening, containers.get(happening.container))
            if position % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)

    def _play_process(
        self, pod: Object, played: SimulatedPod, happening: Happening, container: Container | None
    ) -> None:
        """What is told of a container that is really a process happens to the process too."""
        if self._processes is None or container is None or not container.behaviour.run:
            return
        if happening.reason == "Killing":
            self._processes.stop(pod["metadata"]["uid"], container.name, played.grace_seconds)
        elif happening.reason == "Started":
            metadata = pod["metadata"]
            log = self._streams.log_of(metadata["namespace"], metadata["name"], container.name)

            def report(exit_code: int) -> None:
                played.exited(container.name, exit_code)
                self._wake(pod)

            self._processes.start(pod, container.spec, log, report)

    async def _report(self, pod: Object, played: SimulatedPod, now: Moment, weight: int) -> None:
        metadata = pod["metadata"]
        known = (pod.get("status") or {}).get("podIP") or ""
        address = self._addresses.address_of(metadata["uid"], known)
        status = await weighed(weight, played.status, now, self.address, address)
        if self._reported.get(metadata["uid"]) == status and not _is_contradicted(pod, status):
            return
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        try:
            await self._pods.patch(metadata["namespace"], metadata["name"], patch, "strategic", subresource="status")
        except errors.NotFound:
            self.forget(metadata["uid"])
        else:
            self._reported[metadata["uid"]] = status

    async def _finish(self, pod: Object) -> None:
        """Nothing of the pod runs any more: let it go."""
        metadata = pod["metadata"]
        try:
            await self._pods.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"], grace_seconds=0)
        except (errors.NotFound, errors.Conflict):
            self.forget(metadata["uid"])

    def _tell(self, pod: Object, happening: Happening, containers: Mapping[str, Container]) -> None:
        if happening.reason == "Started":
            self._streams.started(pod, happening.container, containers[happening.container].behaviour)
        self._recorder.event(
            pod,
            "Warning" if happening.type == "Warning" else "Normal",
            happening.reason,
            happening.message,
            kind="Pod",
            api_version="v1",
            field_path=_field_path(happening),
        )


def _weight(pod: Object) -> int:
    """What playing a pod is as much work as, in bytes of usual JSON."""
    return _CONTAINER * sum(len(pod["spec"].get(kind) or ()) for kind in _KINDS)


def _is_contradicted(pod: Object, status: dict[str, Any]) -> bool:
    """Whether somebody has said something else meanwhile: that the pod has no node, say, or is not ready."""
    for condition in status["conditions"]:
        known = condition_of(pod, condition["type"])
        if known is not None and known["status"] != condition["status"]:
            return True
    return False


def _field_path(happening: Happening) -> str:
    if not happening.container:
        return ""
    return f"spec.{'initContainers' if happening.is_init else 'containers'}{{{happening.container}}}"
