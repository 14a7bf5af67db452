"""Claims are kept while a pod that has a node uses them, and say in a condition since when nobody does."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.owners import is_controlled_by
from pilothouse.controllers.runtime.pods import condition_of, is_terminal
from pilothouse.controllers.volumes.facts import PODS_BY_CLAIM, claims_of_pod, phase_of, pods_by_claim
from pilothouse.controllers.volumes.protection import Protected, Protection
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time

_NAME: Final = "persistentvolumeclaim-protection-controller"
_ACCOUNT: Final = "pvc-protection-controller"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    ClaimProtection(context).start(context.supervisor)


class ClaimProtection:
    """Follows claims and the pods that name them."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._claims = context.informers.of("", "v1", "persistentvolumeclaims")
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_CLAIM, pods_by_claim)
        client = context.client(_ACCOUNT)
        self._client, self._pod_client = client.of("", "v1", "persistentvolumeclaims"), client.of("", "v1", "pods")
        self._protection = Protection(
            context,
            Protected(_NAME, "kubernetes.io/pvc-protection", self._claims, self._client, self._is_kept, [self._pods]),
        )
        self._conditions: Controller[Key] = Controller(
            f"{_NAME}, conditions", self._set_condition, wait_for=[self._claims, self._pods], clock=context.clock
        )
        self._claims.add_handler(self._claim_seen, lambda old, new: self._claim_seen(new), name=_NAME)
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_seen, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to protect."""
        self._protection.controller.start(supervisor)
        self._conditions.start(supervisor)

    def _claim_seen(self, claim: Object) -> None:
        if phase_of(claim) == "Bound" and condition_of(claim, "Unused") is None:
            self._conditions.queue.add(key_of(claim))

    def _pod_changed(self, old: Object, new: Object) -> None:
        if _stands(old) != _stands(new):
            self._pod_seen(new)

    def _pod_seen(self, pod: Object) -> None:
        for name in claims_of_pod(pod):
            key = pod["metadata"]["namespace"], name
            self._protection.controller.queue.add(key)
            self._conditions.queue.add(key)

    async def _is_kept(self, claim: Object) -> bool:
        if any(keeps(pod, claim) for pod in self._pods_of(claim)):
            return True
        # The informer may be behind, and the finalizer is not given back: the server has the last word.
        async for pod in self._pod_client.items(claim["metadata"]["namespace"]):
            if keeps(pod, claim):
                return True
        return False

    def _pods_of(self, claim: Object) -> list[Object]:
        return self._pods.lister.by_index(PODS_BY_CLAIM, "/".join(key_of(claim)))

    async def _set_condition(self, key: Key) -> None:
        claim = self._claims.lister.get(*key)
        if claim is None or claim["metadata"].get("deletionTimestamp") or phase_of(claim) != "Bound":
            return
        is_used = any(not is_terminal(pod) and names(pod, claim) for pod in self._pods_of(claim))
        known = (condition_of(claim, "Unused") or {}).get("status")
        wanted = "False" if is_used else "True"
        if known == wanted:
            return
        changed = copy_of(claim)
        others = [each for each in changed["status"].get("conditions") or () if each["type"] != "Unused"]
        changed["status"]["conditions"] = [*others, _condition(wanted, format_time(self._clock.now()))]
        try:
            await self._client.update_status(changed)
        except errors.NotFound:
            return


def names(pod: Object, claim: Object) -> bool:
    """Whether a pod's volumes name a claim, or stand for it because it was made for the pod."""
    name = claim["metadata"]["name"]
    for volume in pod["spec"].get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        is_own = "ephemeral" in volume and f"{pod['metadata']['name']}-{volume['name']}" == name
        if is_own and is_controlled_by(claim, pod):
            return True
    return False


def keeps(pod: Object, claim: Object) -> bool:
    """Whether a claim must not go because of a pod: its node may have the volume mounted, even when it has ended.

    A claim that was made for a pod whose node has let go of it does not wait until the pod is collected.
    """
    if not pod["spec"].get("nodeName") or not names(pod, claim):
        return False
    metadata = pod["metadata"]
    is_shut_down = metadata.get("deletionTimestamp") and metadata.get("deletionGracePeriodSeconds") == 0
    return not is_shut_down or not is_controlled_by(claim, pod)


def _stands(pod: Object) -> tuple[Any, ...]:
    """What of a pod decides about its claims."""
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds") if metadata.get("deletionTimestamp") else None
    return metadata["uid"], pod["spec"].get("nodeName"), is_terminal(pod), grace


def _condition(status: str, now: str) -> dict[str, str]:
    is_unused = status == "True"
    return {
        "type": "Unused",
        "status": status,
        "reason": "NoPodsUsingPVC" if is_unused else "PodUsingPVC",
        "message": (
            "No pods are currently referencing this PVC" if is_unused else "A pod is currently referencing this PVC"
        ),
        "lastTransitionTime": now,
    }
