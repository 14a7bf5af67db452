"""Reports in the status of each validating admission policy what type checking has to say of its expressions.

Each generation of a policy is checked once, off the event loop. The controller manager does this; a server without
controllers does it only when asked to.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.admission.versions import ServedVersions
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

MANAGER: Final = "validatingadmissionpolicy-status-controller"
_GROUP: Final = "admissionregistration.k8s.io"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    if context.served is None:
        raise ValueError("nothing is known of the versions that are served")
    PolicyTypes(context.client(MANAGER), context.informers, context.served).start(context.supervisor)


class PolicyTypes:
    """Follows policies and checks those that changed."""

    def __init__(self, client: Client, informers: InformerFactory, served: ServedVersions) -> None:
        self._client, self._served = client.of(_GROUP, "v1", "validatingadmissionpolicies"), served
        self._policies = informers.of(_GROUP, "v1", "validatingadmissionpolicies")
        self._controller: Controller[str] = Controller(
            "types of admission policies", self.reconcile, wait_for=[self._policies]
        )
        self._policies.add_handler(self._changed, lambda old, new: self._changed(new), name="policy types")

    def start(self, supervisor: Supervisor) -> None:
        """Begin to check."""
        self._controller.start(supervisor)

    def _changed(self, policy: Object) -> None:
        self._controller.queue.add(policy["metadata"]["name"])

    async def reconcile(self, name: str) -> None:
        """Check a policy unless its present generation was."""
        policy = self._policies.lister.get("", name)
        if policy is None or _is_checked(policy):
            return
        # Brings the whole expression language along, which few servers need.
        from pilothouse.admission.policies.type_checking import TypeChecker

        found = await asyncio.to_thread(TypeChecker(self._served).check, policy.get("spec") or {})
        status: Object = {"observedGeneration": policy["metadata"]["generation"], "typeChecking": {}}
        if found:
            status["typeChecking"]["expressionWarnings"] = found
        applied = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "status": status,
        }
        try:
            await self._client.apply(applied, MANAGER, force=True, subresource="status")
        except errors.NotFound:
            return


def _is_checked(policy: Object) -> bool:
    generation = policy["metadata"].get("generation", 0)
    return bool(generation <= (policy.get("status") or {}).get("observedGeneration", 0))
