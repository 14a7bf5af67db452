"""Pods that nobody will ever clear away: too many that have ended, those of nodes that have gone, those never placed.

ended pods beyond the threshold                        the oldest are deleted
pods on a node that has not existed for a while        failed, then deleted
pods that are being deleted and never had a node       deleted at once
pods that are being deleted on an out-of-service node  failed, then deleted at once
"""

from __future__ import annotations

import logging
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import attempt_all, found_among
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controllers.runtime.indexer import PODS_BY_NODE
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time

logger = logging.getLogger(__name__)
_ACCOUNT: Final = "pod-garbage-collector"
_PERIOD: Final = 20.0
_QUARANTINE: Final = 40.0
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


def start(context: ControllerContext) -> None:
    """Start the pod garbage collector."""
    PodGarbage(context).start(context.supervisor)


class PodGarbage:
    """Looks at all pods every few seconds."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._most = context.clock, context.settings.terminated_pods
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_NODE)
        self._nodes = context.informers.of("", "v1", "nodes")
        client = context.client(_ACCOUNT)
        self._client, self._node_client = client.of("", "v1", "pods"), client.of("", "v1", "nodes")
        self._missing: dict[str, float] = {}
        self._rounds = Periodic("pod garbage collector", self.collect, _PERIOD, clock=context.clock)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to look."""
        self._rounds.start(supervisor)

    async def collect(self) -> None:
        """One round."""
        await self._pods.wait_synced()
        await self._nodes.wait_synced()
        pods = self._pods.lister.list()
        gone = await self._gone_nodes()

        def may_go(pod: Object) -> bool:
            return "deletionTimestamp" in pod["metadata"] or (pod["spec"].get("nodeName") or "") in gone

        async def clear(pod: Object) -> None:
            metadata, node_name = pod["metadata"], pod["spec"].get("nodeName") or ""
            if node_name in gone:
                await self._fail_and_delete(pod, "DeletionByPodGC", "PodGC: node no longer exists")
            elif metadata.get("deletionTimestamp") and not node_name:
                await self._delete(pod)
            elif metadata.get("deletionTimestamp") and self._is_out_of_service(node_name):
                await self._fail_and_delete(pod, "", "")

        try:
            if self._most > 0:
                await attempt_all(self._ended_too_many(await found_among(pods, is_terminal)), self._delete)
        finally:
            await attempt_all(await found_among(pods, may_go), clear)

    def _ended_too_many(self, ended: list[Object]) -> list[Object]:
        ended.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return ended[: max(0, len(ended) - self._most)]

    async def _gone_nodes(self) -> set[str]:
        """Nodes with pods that have been missing for long enough, and that the API does not know either."""
        named = self._pods.lister.index_values(PODS_BY_NODE)
        missing = {name for name in named if self._nodes.lister.get("", name) is None}
        now = self._clock.monotonic()
        self._missing = {name: self._missing.get(name, now) for name in missing}
        gone = set()
        for name, since in self._missing.items():
            if now - since >= _QUARANTINE:
                try:
                    await self._node_client.get("", name)
                except errors.NotFound:
                    gone.add(name)
                except errors.StatusError as error:
                    logger.warning("node %s may or may not be there: %s", name, error.message)
        return gone

    def _is_out_of_service(self, node_name: str) -> bool:
        node = self._nodes.lister.get("", node_name)
        if node is None:
            return False
        ready = next((each for each in node["status"].get("conditions") or () if each["type"] == "Ready"), None)
        if ready is not None and ready["status"] == "True":
            return False
        return any(taint["key"] == _OUT_OF_SERVICE for taint in node["spec"].get("taints") or ())

    async def _fail_and_delete(self, pod: Object, reason: str, message: str) -> None:
        metadata = pod["metadata"]
        if not is_terminal(pod):
            status: Object = {"phase": "Failed"}
            if reason:
                status["conditions"] = [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": reason,
                        "message": message,
                        "lastTransitionTime": format_time(self._clock.now()),
                    }
                ]
            patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
            try:
                await self._client.patch(
                    metadata["namespace"], metadata["name"], patch, "strategic", subresource="status"
                )
            except errors.NotFound:
                return
        await self._delete(pod)

    async def _delete(self, pod: Object) -> None:
        metadata = pod["metadata"]
        try:
            await self._client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"], grace_seconds=0)
        except (errors.NotFound, errors.Conflict):
            return
