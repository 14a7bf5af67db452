"""Reports in the status of each validating admission policy what type checking has to say of its expressions.

Each generation of a policy is checked once, off the event loop. In the original the controller manager does this; a
server does it only when asked to.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.admission.versions import ServedVersions
from pilothouse.controllers.following import Follower
from pilothouse.controllers.own_objects import existing, update_status
from pilothouse.controllers.running import Controller
from pilothouse.registry.store.store import Store

MANAGER: Final = "validatingadmissionpolicy-status-controller"
Object = dict[str, Any]


class PolicyTypes:
    """Follows policies and checks those that changed."""

    def __init__(self, store: Store, served: ServedVersions) -> None:
        self._store, self._served = store, served
        self._controller: Controller[str] = Controller("types of admission policies", self.reconcile)
        queue = self._controller.queue
        self._follower = Follower(store, lambda obj: queue.add(obj["metadata"]["name"]), lambda namespace, name: None)

    async def start(self) -> None:
        """Begin to check."""
        self._follower.start()
        self._controller.start()

    async def stop(self) -> None:
        """Stop following and checking."""
        await self._follower.stop()
        await self._controller.stop()

    async def reconcile(self, name: str) -> None:
        """Check a policy unless its present generation was."""
        policy = await existing(self._store, "", name)
        if policy is None or _is_checked(policy):
            return
        # Brings the whole expression language along, which few servers need.
        from pilothouse.admission.policies.type_checking import TypeChecker

        found = await asyncio.to_thread(TypeChecker(self._served).check, policy.get("spec") or {})
        status: Object = {"observedGeneration": policy["metadata"]["generation"], "typeChecking": {}}
        if found:
            status["typeChecking"]["expressionWarnings"] = found

        def change(stored: Object) -> Object:
            return {**stored, "status": status}

        await update_status(self._store, "", name, change, manager=MANAGER, operation="Apply")


def _is_checked(policy: Object) -> bool:
    generation = policy["metadata"].get("generation", 0)
    return bool(generation <= (policy.get("status") or {}).get("observedGeneration", 0))
