"""The scheduler: watches pods without a node and brings each to one, as kube-scheduler does.

    informers ──► snapshot, queue ──pop──► placement ──► assumed on a node ──► bound in the background
                                               └ no fit ──► preemption ──► condition, event, put aside

Choosing is done one pod at a time and never waits; binding is done for many at once. A pod that could not be bound
gives its room back and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Any, Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.pods import condition_of, is_terminal
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time
from pilothouse.simulation.scheduler.binding import Binder, BindingFailed
from pilothouse.simulation.scheduler.changes import Change, helpful
from pilothouse.simulation.scheduler.cluster_view import ClusterView, DeviceView
from pilothouse.simulation.scheduler.devices.claims import ClaimMissing, claims_of
from pilothouse.simulation.scheduler.devices.ledger import DeviceLedger
from pilothouse.simulation.scheduler.devices.reservations import DeviceReservations, ReservationFailed
from pilothouse.simulation.scheduler.events import SchedulingEvents
from pilothouse.simulation.scheduler.filters.devices import NOT_HERE, STALE
from pilothouse.simulation.scheduler.filters.verdict import FilterFailed, Unschedulable
from pilothouse.simulation.scheduler.long_choices import LongChoices
from pilothouse.simulation.scheduler.nominations import Nominations
from pilothouse.simulation.scheduler.placement import NoFit, NoNodes, Placement
from pilothouse.simulation.scheduler.pod_info import READING, PodInfo
from pilothouse.simulation.scheduler.preemption import Candidate, NoCandidate, find_candidate
from pilothouse.simulation.scheduler.queue import SchedulingQueue
from pilothouse.simulation.scheduler.snapshot import NodeInfo, Snapshot
from pilothouse.simulation.scheduler.volumes import ClaimError

logger = logging.getLogger(__name__)
DEFAULT_NAME: Final = "default-scheduler"
_AT_ONCE: Final = 128
_TURN_SECONDS: Final = 0.005
"""For so long pods are placed before others get their turn on the event loop: in a busy process turns come rarely."""
_NOT_BOUND: Final = (errors.StatusError, BindingFailed, ClaimError, ReservationFailed, ClaimMissing)
_NO_STATE: Final = "not found"
"""What kube-scheduler adds where a pod was refused before its filter on devices had noted anything of it."""
_NO_NODES: Final = "no nodes available to schedule pods"
_NODE_FIELDS: Final = (("metadata", "labels"), ("spec", "taints"), ("spec", "unschedulable"), ("status", "allocatable"))


class Scheduler:
    """Schedules the pods that name one of ``names``."""

    def __init__(
        self,
        client: Client,
        informers: InformerFactory,
        supervisor: Supervisor,
        *,
        names: Collection[str] = (DEFAULT_NAME,),
        instance: str = "pilothouse",
        clock: Clock = SYSTEM,
        placement: Placement | None = None,
    ) -> None:
        self._names, self._clock, self._supervisor = frozenset(names), clock, supervisor
        self._client_pods = client.of("", "v1", "pods")
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_reading(READING, PodInfo.read)
        self._nodes = informers.of("", "v1", "nodes")
        self._snapshot = Snapshot()
        self._choices = LongChoices(self._snapshot)
        self._cluster = _view(self._snapshot, informers)
        self._others = _helping(informers)
        self._resource_claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
        self._device_kinds = _describing_devices(informers)
        self._queue = SchedulingQueue(clock)
        self._placement = placement or Placement()
        self._nominations = Nominations(self._snapshot)
        self._reservations = DeviceReservations(client, self._cluster, clock)
        self._binder = Binder(client, self._cluster, clock)
        self._without_claims: dict[tuple[str, str], PodInfo] = {}
        """Pods whose resource claims are not there: not even tried."""
        self._assumed: dict[str, str] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._events = SchedulingEvents(client, supervisor, clock, instance)

    def start(self) -> None:
        """Begin to follow the cluster and to schedule."""
        self._nodes.add_handler(self._node_added, self._node_changed, self._node_gone, name="scheduler")
        self._pods.add_handler(self._pod_added, self._pod_changed, self._pod_gone, name="scheduler")
        for informer in self._others:
            informer.add_handler(
                lambda obj: self._queue.move(Change.VOLUMES),
                lambda old, new: self._queue.move(Change.VOLUMES),
                name="scheduler",
            )
        self._resource_claims.add_handler(
            self._claim_seen, lambda old, new: self._claim_seen(new), self._claim_gone, name="scheduler"
        )
        for informer in self._device_kinds:
            informer.add_handler(
                lambda obj: self._queue.move(Change.DEVICES),
                lambda old, new: self._queue.move(Change.DEVICES),
                lambda obj: self._queue.move(Change.DEVICES),
                name="scheduler",
            )
        self._supervisor.run("scheduler", self._run)

    # What the cluster is like

    def _node_added(self, node: Object) -> None:
        self._choices.take(lambda: self._take_node(node, helps=True))

    def _node_changed(self, old: Object, new: Object) -> None:
        helps = any((old.get(part) or {}).get(name) != (new.get(part) or {}).get(name) for part, name in _NODE_FIELDS)
        self._choices.take(lambda: self._take_node(new, helps=helps))

    def _take_node(self, node: Object, *, helps: bool) -> None:
        self._snapshot.set_node(node)
        if helps:
            self._queue.move(Change.NODES)

    def _node_gone(self, node: Object) -> None:
        self._choices.take(lambda: self._snapshot.remove_node(node["metadata"]["name"]))

    def _pod_added(self, pod: Object) -> None:
        info = self._info_of(pod)
        self._choices.take(lambda: self._take_new(info))

    def _info_of(self, pod: Object) -> PodInfo:
        info: PodInfo = self._pods.lister.reading(READING, pod)
        return info

    def _take_new(self, info: PodInfo) -> None:
        if info.node_name:
            self._pod_placed(info)
        elif self._is_mine(info):
            self._nominations.note(info)
            self._add(info)

    def _add(self, info: PodInfo) -> None:
        """Try the pod, once all of its resource claims are there."""
        try:
            claims_of(info, self._cluster.devices)
        except ClaimMissing as error:
            logger.debug("pod %s/%s waits: %s", info.namespace, info.name, error)
            self._without_claims[info.key] = info
        else:
            self._without_claims.pop(info.key, None)
            self._queue.add(info)

    def _pod_changed(self, old: Object, new: Object) -> None:
        info = self._info_of(new)
        self._choices.take(lambda: self._take_changed(old, info))

    def _take_changed(self, old: Object, info: PodInfo) -> None:
        if info.node_name:
            self._pod_placed(info)
        elif not self._is_mine(info):
            self._forget(info)
        elif _may_help(old, info.pod) or info.key in self._without_claims:
            self._nominations.note(info)
            self._add(info)
        else:
            self._nominations.note(info)
            self._queue.refresh(info)

    def _pod_placed(self, info: PodInfo) -> None:
        self._without_claims.pop(info.key, None)
        self._queue.delete(info.key)
        self._nominations.forget(info.uid)
        self._assumed.pop(info.uid, None)
        was_there = self._snapshot.node_name_of(info.uid) is not None
        if is_terminal(info.pod):
            if self._snapshot.remove_pod(info.uid) is not None:
                self._queue.move(Change.ROOM)
            return
        self._snapshot.add_pod(info, info.node_name)
        if not was_there:
            self._queue.move(Change.PODS)

    def _pod_gone(self, pod: Object) -> None:
        self._choices.take(lambda: self._take_gone(PodInfo(pod)))

    def _take_gone(self, info: PodInfo) -> None:
        self._forget(info)
        self._assumed.pop(info.uid, None)
        if self._snapshot.remove_pod(info.uid) is not None:
            self._queue.move(Change.ROOM)

    def _forget(self, info: PodInfo) -> None:
        self._without_claims.pop(info.key, None)
        self._queue.delete(info.key)
        if self._nominations.forget(info.uid):
            self._queue.move(Change.ROOM)

    def _claim_seen(self, claim: Object) -> None:
        self._choices.take(lambda: self._take_claim(claim))

    def _take_claim(self, claim: Object) -> None:
        self._cluster.devices.ledger.see(claim)
        self._retry_with_devices(claim)

    def _claim_gone(self, claim: Object) -> None:
        self._choices.take(lambda: self._drop_claim(claim))

    def _drop_claim(self, claim: Object) -> None:
        self._cluster.devices.ledger.forget(claim["metadata"]["uid"])
        self._retry_with_devices(claim)

    def _retry_with_devices(self, claim: Object) -> None:
        namespace = claim["metadata"]["namespace"]
        for info in [each for each in self._without_claims.values() if each.namespace == namespace]:
            self._add(info)
        self._queue.move(Change.DEVICES)

    def _is_mine(self, pod: PodInfo) -> bool:
        if pod.scheduler not in self._names or pod.is_terminating or is_terminal(pod.pod):
            return False
        return not pod.spec.get("schedulingGates")

    # One pod after the other

    async def _run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        for informer in (self._resource_claims, *self._device_kinds):
            await informer.wait_synced()
        began = time.monotonic()
        while True:
            pod = await self._queue.pop()
            await self._slots.acquire()
            try:
                await self._schedule(pod)
            except Exception:
                self._slots.release()
                self._queue.put_aside(pod.key, failed=True)
                raise
            if time.monotonic() - began > _TURN_SECONDS:
                await asyncio.sleep(0)
                began = time.monotonic()

    async def _schedule(self, pod: PodInfo) -> None:
        try:
            info = await self._choices.make(pod, self._place, pod)
        except NoNodes:
            self._slots.release()
            await self._refuse(pod, _NO_NODES)
        except (FilterFailed, ReservationFailed) as error:
            self._slots.release()
            await self._refuse(pod, str(error), reason="SchedulerError")
        except NoFit as no_fit:
            self._slots.release()
            await self._handle_no_fit(pod, no_fit)
        else:
            self._supervisor.spawn(f"binding of {pod.namespace}/{pod.name}", self._bind(pod, info))

    def _place(self, pod: PodInfo) -> NodeInfo:
        """Choose a node and take the room there."""
        with self._nominations.counted(pod):
            info = self._placement.find(pod, self._cluster)
        self._reservations.reserve(pod, info)
        self._snapshot.add_pod(pod, info.name)
        self._assumed[pod.uid] = info.name
        return info

    async def _bind(self, pod: PodInfo, info: NodeInfo) -> None:
        try:
            await self._reservations.write(pod)
            if self._reservations.awaits_drivers(pod):
                note = f"waiting for binding conditions for device on node {info.name}"
                self._events.record(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
                await self._reservations.wait_ready(pod)
            await self._binder.bind(pod, info)
        except _NOT_BOUND as error:
            logger.info("pod %s/%s is not bound to %s: %s", pod.namespace, pod.name, info.name, error)
            await self._give_back(pod)
            if not isinstance(error, errors.NotFound):
                await self._refuse(pod, str(error), reason="SchedulerError")
        else:
            self._reservations.done(pod)
            note = f"Successfully assigned {pod.namespace}/{pod.name} to {info.name}"
            self._events.record(pod, "Normal", "Scheduled", "Binding", note)
        finally:
            self._slots.release()

    async def _give_back(self, pod: PodInfo) -> None:
        if await self._reservations.release(pod):
            self._queue.move(Change.DEVICES)
        if self._assumed.pop(pod.uid, None) is not None:
            self._choices.take(lambda: self._free_room(pod))

    def _free_room(self, pod: PodInfo) -> None:
        self._snapshot.remove_pod(pod.uid)
        self._queue.move(Change.ROOM)

    async def _handle_no_fit(self, pod: PodInfo, no_fit: NoFit) -> None:
        if no_fit.is_early:
            await self._refuse(pod, no_fit.message(_NO_STATE), no_fit=no_fit)
            return
        freed = await self._free_idle_claim(pod, no_fit)
        try:
            judges = self._placement.judges
            candidate = await self._choices.make(pod, find_candidate, pod, no_fit, self._cluster, judges)
        except NoCandidate as error:
            after = ", ".join([*freed, f"preemption: {error}"])
            await self._refuse(pod, no_fit.message(after), no_fit=no_fit)
            return
        await self._preempt(pod, candidate)
        found = f"found a potential placement for pod on node {candidate.node.name}"
        after = f"preemption: {found}, preempting {len(candidate.victims)} victims"
        await self._refuse(pod, no_fit.message(after), nominated=candidate.node.name, no_fit=no_fit)

    async def _free_idle_claim(self, pod: PodInfo, no_fit: NoFit) -> list[str]:
        """Rather than evict anybody, give back devices that nobody uses and that keep the pod from nodes."""
        nodes = [info for info in self._cluster.snapshot.nodes if no_fit.verdicts.get(info.name) == NOT_HERE]
        if not nodes and STALE not in no_fit.verdicts.values():
            return []
        try:
            said = await self._reservations.free_idle(pod, nodes)
        except (Unschedulable, errors.StatusError) as error:
            logger.info("claims of pod %s/%s: %s", *pod.key, error)
            return []
        return [said] if said else []

    # When no node will do

    async def _refuse(
        self,
        pod: PodInfo,
        message: str,
        *,
        reason: str = "Unschedulable",
        nominated: str | None = None,
        no_fit: NoFit | None = None,
    ) -> None:
        """Tell why, in an event and in the condition PodScheduled, and try again when something has changed."""
        self._queue.put_aside(pod.key, failed=reason == "SchedulerError", helped_by=helpful(pod, no_fit))
        self._events.record(pod, "Warning", "FailedScheduling", "Scheduling", message)
        newest = self._pods.lister.get(*pod.key)
        if newest is None or newest["metadata"]["uid"] != pod.uid:
            return
        patch = _status_patch(newest, reason, message, nominated, format_time(self._clock.now()))
        if patch is None:
            return
        try:
            await self._client_pods.patch(*pod.key, {"status": patch}, "strategic", subresource="status")
        except errors.StatusError as error:
            logger.info("status of pod %s/%s: %s", *pod.key, error.message)

    async def _preempt(self, pod: PodInfo, candidate: Candidate) -> None:
        self._nominations.nominate(pod, candidate.node.name)
        for victim in candidate.victims:
            if not victim.is_terminating:
                await self._evict(victim, pod, candidate.node.name)

    async def _evict(self, victim: PodInfo, pod: PodInfo, node_name: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": format_time(self._clock.now()),
            "observedGeneration": victim.pod["metadata"].get("generation"),
        }
        try:
            status = {"status": {"conditions": [condition]}}
            await self._client_pods.patch(*victim.key, status, "strategic", subresource="status")
            await self._client_pods.delete(*victim.key, uid=victim.uid)
        except errors.StatusError as error:
            logger.info("victim %s/%s: %s", *victim.key, error.message)
            return
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        self._events.record(victim, "Normal", "Preempted", "Preempting", note, related=pod)


def _view(snapshot: Snapshot, informers: InformerFactory) -> ClusterView:
    def get(group: str, version: str, resource: str) -> Any:
        return informers.of(group, version, resource).lister.get

    def listed(group: str, version: str, resource: str) -> Any:
        lister = informers.of(group, version, resource).lister
        return lambda namespace: lister.list(namespace or None)

    claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
    claims.add_index(BY_CONTROLLER_UID)
    return ClusterView(
        snapshot=snapshot,
        namespace=get("", "v1", "namespaces"),
        claim=get("", "v1", "persistentvolumeclaims"),
        volume=get("", "v1", "persistentvolumes"),
        volumes=listed("", "v1", "persistentvolumes"),
        storage_class=get("storage.k8s.io", "v1", "storageclasses"),
        csi_node=get("storage.k8s.io", "v1", "csinodes"),
        csi_driver=get("storage.k8s.io", "v1", "csidrivers"),
        capacities=listed("storage.k8s.io", "v1", "csistoragecapacities"),
        services=listed("", "v1", "services"),
        replica_set=get("apps", "v1", "replicasets"),
        stateful_set=get("apps", "v1", "statefulsets"),
        replication_controller=get("", "v1", "replicationcontrollers"),
        disruption_budgets=listed("policy", "v1", "poddisruptionbudgets"),
        devices=DeviceView(
            claim=get("resource.k8s.io", "v1", "resourceclaims"),
            pod_group=get("scheduling.k8s.io", "v1beta1", "podgroups"),
            claims_of_owner=lambda uid: claims.lister.by_index(BY_CONTROLLER_UID, uid),
            device_class=get("resource.k8s.io", "v1", "deviceclasses"),
            device_classes=listed("resource.k8s.io", "v1", "deviceclasses"),
            slices=listed("resource.k8s.io", "v1", "resourceslices"),
            taint_rules=listed("resource.k8s.io", "v1", "devicetaintrules"),
            ledger=DeviceLedger(),
        ),
    )


def _helping(informers: InformerFactory) -> list[Informer]:
    """Kinds whose changes may let a pod with claims be scheduled."""
    return [
        informers.of("", "v1", "persistentvolumeclaims"),
        informers.of("", "v1", "persistentvolumes"),
        informers.of("storage.k8s.io", "v1", "storageclasses"),
        informers.of("storage.k8s.io", "v1", "csinodes"),
        informers.of("storage.k8s.io", "v1", "csidrivers"),
        informers.of("storage.k8s.io", "v1", "csistoragecapacities"),
    ]


def _describing_devices(informers: InformerFactory) -> list[Informer]:
    """Kinds that say which devices there are."""
    return [
        informers.of("resource.k8s.io", "v1", each) for each in ("deviceclasses", "resourceslices", "devicetaintrules")
    ]


def _may_help(old: Object, new: Object) -> bool:
    """Whether a change of the pod itself may let it be scheduled; what we wrote into its status does not count."""
    before, after = old["metadata"], new["metadata"]
    return bool(old["spec"] != new["spec"] or before.get("labels") != after.get("labels"))


def _status_patch(pod: Object, reason: str, message: str, nominated: str | None, now: str) -> Object | None:
    """The condition PodScheduled and the nominated node; nothing where all of it is there already."""
    known = condition_of(pod, "PodScheduled") or {}
    wanted = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    patch: Object = {}
    if any(known.get(name) != value for name, value in wanted.items()):
        patch["conditions"] = [
            {
                **wanted,
                "observedGeneration": pod["metadata"].get("generation"),
                "lastProbeTime": None,
                "lastTransitionTime": known["lastTransitionTime"] if known.get("status") == "False" else now,
            }
        ]
    if nominated is not None and (pod.get("status") or {}).get("nominatedNodeName") != nominated:
        patch["nominatedNodeName"] = nominated
    return patch or None
