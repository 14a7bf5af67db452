"""Bringing devices and pods together: choose when a node is chosen, write before the pod is bound, let go on failure.

reserve     devices of the unallocated claims are chosen for the node, and count as taken from now on
write       each claim gets its finalizer, its allocation, and the pod among its consumers; for extended resources one
            is made first, and the status of the pod says what its containers have of it
release     nothing of it was to be: the devices are free again, the pod no consumer
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.controllers.runtime import pod_groups
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.devices.claims import (
    BindingRefused,
    ClaimMissing,
    allocation_in,
    claims_of,
    claims_with_entries,
    has_binding_conditions,
    is_ready,
    plan_for,
    uses_devices,
)
from pilothouse.simulation.scheduler.devices.extended import NOT_STORED, ExtendedClaim, to_store
from pilothouse.simulation.scheduler.devices.results import allocation_of
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_ATTEMPTS: Final = 5
_READY_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.1
_LONGEST_LOOK: Final = 5.0


class ReservationFailed(Exception):
    """A claim could not be written for the pod; the message says why."""


class DeviceReservations:
    """Keeps devices for pods, through the API."""

    def __init__(self, client: Client, cluster: ClusterView, clock: Clock) -> None:
        self._claims = client.of("resource.k8s.io", "v1", "resourceclaims")
        self._pods = client.of("", "v1", "pods")
        self._cluster, self._clock = cluster, clock
        self._ledger = cluster.devices.ledger
        self._pending: dict[str, dict[str, Object]] = {}
        """By pod what its claims are to get, by claim."""
        self._extended: dict[str, ExtendedClaim] = {}
        """By pod the claim for its extended resources, as planned, then as stored."""

    def reserve(self, pod: PodInfo, info: NodeInfo) -> None:
        """Choose devices on the node that has been chosen; the filter has found that this can be done."""
        if not uses_devices(pod):
            return
        plan = plan_for(pod, self._cluster)
        choices = plan.choose(info)
        if choices is None:
            raise ReservationFailed("cannot allocate all claims")
        extended = plan.extended.claim_on(info)
        if extended is not None:
            self._extended[pod.uid] = extended
        decided = self._pending[pod.uid] = {}
        for claim, choice in zip(plan.wanted(info), choices, strict=True):
            uid = claim["metadata"]["uid"]
            decided[uid] = allocation_of(claim, choice, info.name)
            self._ledger.decide(uid, decided[uid])

    async def write(self, pod: PodInfo) -> None:
        """Write all claims of the pod. Raises ReservationFailed, or what the server refuses."""
        if not uses_devices(pod):
            return
        decided = self._pending.get(pod.uid, {})
        group = self._group_of(pod)
        for claim, entry in claims_with_entries(pod, self._cluster.devices):
            uid = claim["metadata"]["uid"]
            if not pod_groups.is_reserved_for(claim, pod.pod):
                consumer = pod_groups.consumer_of(pod.pod, entry, group)
                self._ledger.see(await self._write_claim(claim, decided.get(uid), consumer))
            if uid in decided:
                self._ledger.settle(uid)
        await self._write_extended(pod, decided)
        self._pending.pop(pod.uid, None)

    def _group_of(self, pod: PodInfo) -> Object | None:
        try:
            return pod_groups.group_of(pod.pod, self._cluster.devices.pod_group)
        except pod_groups.GroupMissing as error:
            raise ReservationFailed(str(error)) from None

    async def _write_extended(self, pod: PodInfo, decided: dict[str, Object]) -> None:
        planned = self._extended.get(pod.uid)
        if planned is None:
            return
        uid = planned.claim["metadata"]["uid"]
        created = await self._claims.create(to_store(planned.claim))
        self._extended[pod.uid] = planned._replace(claim=created)
        written = await self._write_claim(created, decided[uid], pod_groups.consumer_of(pod.pod, {}, None))
        self._extended[pod.uid] = planned._replace(claim=written)
        self._ledger.see(written)
        self._ledger.settle(uid)
        told = {"requestMappings": planned.mappings, "resourceClaimName": written["metadata"]["name"]}
        change = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": told}}
        await self._pods.patch(pod.namespace, pod.name, change, "strategic", subresource="status")

    def done(self, pod: PodInfo) -> None:
        """The pod is bound."""
        self._extended.pop(pod.uid, None)

    def _claims_of(self, pod: PodInfo) -> list[Object]:
        """The claims of the pod as they were last written, with the one for its extended resources."""
        claims = claims_of(pod, self._cluster.devices)
        extended = self._extended.get(pod.uid)
        if extended is None:
            return claims
        metadata = extended.claim["metadata"]
        seen = self._cluster.devices.claim(metadata["namespace"], metadata["name"])
        return [*claims, self._ledger.newest(seen or extended.claim)]

    def awaits_drivers(self, pod: PodInfo) -> bool:
        """Whether drivers have a say before the pod is bound."""
        return uses_devices(pod) and any(map(has_binding_conditions, self._claims_of(pod)))

    async def wait_ready(self, pod: PodInfo) -> None:
        """Wait until drivers have made the devices ready. Raises ReservationFailed."""
        deadline = self._clock.monotonic() + _READY_SECONDS
        pause = _LOOK_SECONDS
        while not self._is_ready(pod):
            if self._clock.monotonic() > deadline:
                raise ReservationFailed("device binding timeout: context deadline exceeded")
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, 2 * pause)

    def _is_ready(self, pod: PodInfo) -> bool:
        try:
            return all(map(is_ready, self._claims_of(pod)))
        except (BindingRefused, ClaimMissing) as error:
            raise ReservationFailed(str(error)) from None

    async def _write_claim(self, claim: Object, allocation: Object | None, consumer: Object) -> Object:
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        for attempt in range(_ATTEMPTS):
            newest = copy_of(claim) if attempt == 0 else await self._claims.get(namespace, name)
            try:
                return await self._write_once(newest, allocation, consumer)
            except errors.Conflict:
                continue
        raise ReservationFailed(f"add reservation to claim {namespace}/{name}: too many conflicts")

    async def _write_once(self, claim: Object, allocation: Object | None, consumer: Object) -> Object:
        name = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        if claim["metadata"].get("deletionTimestamp"):
            raise ReservationFailed(f"claim {name} got deleted in the meantime")
        if allocation is not None:
            if allocation_in(claim) is not None:
                raise ReservationFailed(f"claim {name} got allocated elsewhere in the meantime")
            if _FINALIZER not in claim["metadata"].setdefault("finalizers", []):
                claim["metadata"]["finalizers"].append(_FINALIZER)
                claim = await self._claims.update(claim)
            claim.setdefault("status", {})["allocation"] = dict(allocation)
        elif allocation_in(claim) is None:
            raise ReservationFailed(f"claim {name} got deallocated elsewhere in the meantime")
        status = claim["status"]
        status["allocation"].setdefault("allocationTimestamp", format_time(self._clock.now()))
        status.setdefault("reservedFor", []).append(consumer)
        return await self._claims.update_status(claim)

    async def release(self, pod: PodInfo) -> bool:
        """The pod does not come to the node after all; whether devices are free again.

        What was decided counts until it is known what was written: of a write that failed nobody knows that.
        """
        if not uses_devices(pod):
            return False
        extended = self._extended.get(pod.uid)
        if extended is not None and extended.claim["metadata"]["name"] != NOT_STORED:
            await self._delete(extended.claim)
        try:
            claims = claims_of(pod, self._cluster.devices)
        except ClaimMissing:
            claims = []
        for claim in claims:
            newest = await self._read(claim)
            consumers = (newest.get("status") or {}).get("reservedFor") or ()
            if allocation_in(newest) is not None and any(each["uid"] == pod.uid for each in consumers):
                await self._unreserve(newest, pod)
        self._extended.pop(pod.uid, None)
        freed = [self._ledger.settle(uid) for uid in self._pending.pop(pod.uid, {})]
        return any(freed)

    async def _read(self, claim: Object) -> Object:
        """The claim as it is now, which the ledger gets to know; as it was known where it cannot be read."""
        try:
            newest = await self._claims.get(claim["metadata"]["namespace"], claim["metadata"]["name"])
        except errors.StatusError:
            return claim
        self._ledger.see(newest)
        return newest

    async def _unreserve(self, claim: Object, pod: PodInfo) -> None:
        metadata = claim["metadata"]
        entry: dict[str, Any] = {"$patch": "delete", "uid": pod.uid}
        change = {"metadata": {"uid": metadata["uid"]}, "status": {"reservedFor": [entry]}}
        try:
            written = await self._claims.patch(
                metadata["namespace"], metadata["name"], change, "strategic", subresource="status"
            )
        except errors.StatusError:
            return  # the claim controller takes the pod out when it is gone, and the next attempt finds itself in
        self._ledger.see(written)

    async def _delete(self, claim: Object) -> None:
        """Delete a claim that was made for a pod, with its finalizer."""
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        change = {"metadata": {"uid": claim["metadata"]["uid"], "$deleteFromPrimitiveList/finalizers": [_FINALIZER]}}
        try:
            await self._claims.patch(namespace, name, change, "strategic")
            await self._claims.delete(namespace, name, uid=claim["metadata"]["uid"])
        except errors.StatusError:
            await self._read(claim)  # the next attempt finds it and deletes it then

    async def free_idle(self, pod: PodInfo, nodes: list[NodeInfo]) -> str:
        """Free a claim that keeps the pod from nodes and that nobody uses; what to say of it, nothing if none is."""
        plan = plan_for(pod, self._cluster)
        for claim in (claim for info in nodes for claim in plan.unavailable(info)):
            consumers = (claim.get("status") or {}).get("reservedFor") or []
            if all(each["uid"] == pod.uid for each in consumers):
                freed = copy_of(claim)
                for field in ("reservedFor", "allocation", "devices"):
                    freed["status"].pop(field, None)
                self._ledger.see(await self._claims.update_status(freed))
                return "deallocation of ResourceClaim completed"
        if plan.extended.stale is not None:
            await self._delete(plan.extended.stale)
            return "deletion of ResourceClaim completed"
        return ""
