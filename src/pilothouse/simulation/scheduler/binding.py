"""Bringing a pod to its node: volumes that waited for the choice are bound first, then the pod.

Claims without a volume either get one that exists (its ``claimRef`` is set) or the name of the node, so that a
provisioner makes one there; the volume controller does the rest, and the pod waits for it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo
from pilothouse.simulation.scheduler.volumes import SELECTED_NODE, claims_of, find_volume, is_bound

_BIND_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.1
_LONGEST_LOOK: Final = 1.0
_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


class BindingFailed(Exception):
    """The pod could not be brought to its node; the message says why."""


class Binder:
    """Binds pods through the API."""

    def __init__(self, client: Client, cluster: ClusterView, clock: Clock) -> None:
        self._pods = client.of("", "v1", "pods")
        self._claims = client.of("", "v1", "persistentvolumeclaims")
        self._volumes = client.of("", "v1", "persistentvolumes")
        self._cluster, self._clock = cluster, clock

    async def bind(self, pod: PodInfo, info: NodeInfo) -> None:
        """Bind volumes, then the pod. Raises what the server refuses, or BindingFailed."""
        delayed = claims_of(pod, self._cluster).delayed
        if delayed:
            await self._bind_volumes(delayed, info)
        await self._pods.create_subresource(
            pod.namespace,
            pod.name,
            "binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
                "target": {"kind": "Node", "name": info.name},
            },
        )

    async def _bind_volumes(self, claims: list[Object], info: NodeInfo) -> None:
        taken: list[str] = []
        for claim in claims:
            volume = find_volume(claim, self._cluster.volumes(""), info, taken)
            if volume is None:
                await self._ask_for_volume(claim, info)
            else:
                taken.append(volume["metadata"]["name"])
                await self._reserve(volume, claim)
        await self._wait_until_bound(claims)

    async def _ask_for_volume(self, claim: Object, info: NodeInfo) -> None:
        metadata = claim["metadata"]
        if (metadata.get("annotations") or {}).get(SELECTED_NODE) != info.name:
            change = {"metadata": {"annotations": {SELECTED_NODE: info.name}}}
            await self._claims.patch(metadata["namespace"], metadata["name"], change)

    async def _reserve(self, volume: Object, claim: Object) -> None:
        metadata = claim["metadata"]
        reserved = copy_of(volume)
        reserved["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        reserved["metadata"].setdefault("annotations", {})[_BY_CONTROLLER] = "yes"
        await self._volumes.update(reserved)

    async def _wait_until_bound(self, claims: list[Object]) -> None:
        deadline = self._clock.monotonic() + _BIND_SECONDS
        pause = _LOOK_SECONDS
        while not all(map(self._is_bound, claims)):
            if self._clock.monotonic() > deadline:
                raise BindingFailed("binding volumes: context deadline exceeded")
            await asyncio.sleep(pause)
            pause = min(_LONGEST_LOOK, 2 * pause)

    def _is_bound(self, claim: Object) -> bool:
        metadata = claim["metadata"]
        now = self._cluster.claim(metadata["namespace"], metadata["name"])
        if now is None or now["metadata"]["uid"] != metadata["uid"]:
            raise BindingFailed(f'binding volumes: persistentvolumeclaim "{metadata["name"]}" not found')
        return is_bound(now)
