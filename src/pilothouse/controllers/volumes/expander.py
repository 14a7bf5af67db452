"""Claims that ask for more than they have are left to whoever made their volumes; an event says so."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.volumes.facts import claim_key, phase_of, request_of
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "expand-controller"
_NAME: Final = "persistentvolume-expander-controller"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    Expander(context).controller.start(context.supervisor)


class Expander:
    """Watches for claims that grow. No kind of volume is made larger by this process itself."""

    def __init__(self, context: ControllerContext) -> None:
        self._claims = context.informers.of("", "v1", "persistentvolumeclaims")
        self._volumes = context.informers.of("", "v1", "persistentvolumes")
        self._events = context.recorder("volume_expand", _ACCOUNT)
        self.controller: Controller[Key] = Controller(
            _NAME, self._reconcile, wait_for=[self._claims, self._volumes], clock=context.clock
        )
        self._claims.add_handler(lambda obj: self.controller.queue.add(key_of(obj)), self._changed, name=_NAME)
        self._volumes.add_handler(self._volume_seen, name=_NAME)

    def _changed(self, old: Object, new: Object) -> None:
        if request_of(new) > request_of(old):
            self.controller.queue.add(key_of(new))

    def _volume_seen(self, volume: Object) -> None:
        """The claim may have been seen first."""
        key = claim_key(volume)
        if key is not None:
            self.controller.queue.add(key)

    async def _reconcile(self, key: Key) -> None:
        claim = self._claims.lister.get(*key)
        if claim is None or not wants_more(claim):
            return
        volume = self._volumes.lister.get("", claim["spec"].get("volumeName") or "")
        if volume is None or (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            return
        text = "waiting for an external controller to expand this PVC"
        self._events.event(claim, "Normal" if "csi" in volume["spec"] else "Warning", "ExternalExpanding", text)


def wants_more(claim: Object) -> bool:
    """Whether a bound claim asks for more than its status says that it has."""
    if phase_of(claim) != "Bound":
        return False
    has = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    return has is None or request_of(claim) > quantity.parse(str(has))
