"""Claims for the generic ephemeral volumes of pods: named after pod and volume, owned by the pod."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.owners import controller_reference, is_controlled_by
from pilothouse.controllers.volumes.facts import PODS_BY_CLAIM, pods_by_claim
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_NAME: Final = "ephemeral-volume-controller"


class ClaimFailed(Exception):
    """A claim that a pod needs cannot be had."""


def start(context: ControllerContext) -> None:
    """Start the controller."""
    EphemeralVolumes(context).controller.start(context.supervisor)


class EphemeralVolumes:
    """Makes the claims of pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_CLAIM, pods_by_claim)
        self._claims = context.informers.of("", "v1", "persistentvolumeclaims")
        self._client = context.client(_NAME).of("", "v1", "persistentvolumeclaims")
        self._events = context.recorder("ephemeral_volume", _NAME)
        self.controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, wait_for=[self._pods, self._claims], clock=context.clock
        )
        self._pods.add_handler(self._pod_seen, name=_NAME)
        self._claims.add_handler(on_delete=self._claim_gone, name=_NAME)

    def _pod_seen(self, pod: Object) -> None:
        if any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ()):
            self.controller.queue.add(key_of(pod))

    def _claim_gone(self, claim: Object) -> None:
        for pod in self._pods.lister.by_index(PODS_BY_CLAIM, "/".join(key_of(claim))):
            self._pod_seen(pod)

    async def _reconcile(self, key: Key) -> None:
        pod = self._pods.lister.get(*key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        for volume in pod["spec"].get("volumes") or ():
            if "ephemeral" not in volume:
                continue
            try:
                await self._ensure(pod, volume)
            except ClaimFailed as error:
                text = f"ephemeral volume {volume['name']}: {error}"
                self._events.event(pod, "Warning", "FailedBinding", text)
                raise

    async def _ensure(self, pod: Object, volume: Object) -> None:
        namespace, pod_name = key_of(pod)
        name = f"{pod_name}-{volume['name']}"
        known = self._claims.lister.get(namespace, name)
        if known is not None:
            if not is_controlled_by(known, pod):
                raise ClaimFailed(
                    f"PVC {namespace}/{name} was not created for pod {namespace}/{pod_name} (pod is not owner)"
                )
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        given = template.get("metadata") or {}
        metadata: Object = {"name": name, "namespace": namespace}
        metadata |= {field: given[field] for field in ("labels", "annotations") if given.get(field)}
        metadata["ownerReferences"] = [controller_reference(pod, "Pod", "v1")]
        try:
            await self._client.create({"metadata": metadata, "spec": template["spec"]})
        except errors.StatusError as error:
            raise ClaimFailed(f"create PVC {name}: {error.message}") from error
