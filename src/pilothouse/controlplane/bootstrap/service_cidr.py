"""The default ServiceCIDR, ``kubernetes``, from ``--service-cluster-ip-range``.

Created when missing, extended from one family to two, otherwise never changed: a range that differs from the flags is
only reported. It becomes ready once, and only while its ranges are those of the flags.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from pilothouse.controllers.own_objects import condition_of, create, existing, set_condition, update, update_status
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

logger = logging.getLogger(__name__)
NAME: Final = "kubernetes"
CONTROLLER: Final = "kubernetes-service-cidr-controller"
INTERVAL_SECONDS: Final = 10.0


class DefaultServiceCIDR:
    """Keeps the object for these ranges; the first one decides the default family."""

    def __init__(self, store: Store, ranges: Sequence[str]) -> None:
        self._store = store
        self._ranges = list(ranges)
        self._reported: set[str] = set()

    async def reconcile(self) -> None:
        """Create, extend or mark as ready, whatever is due."""
        stored = await existing(self._store, "", NAME)
        if stored is None:
            await create(self._store, {"metadata": {"name": NAME}, "spec": {"cidrs": list(self._ranges)}})
            stored = await existing(self._store, "", NAME)
        elif len(self._ranges) == 2 and stored["spec"]["cidrs"] == self._ranges[:1]:
            await update(self._store, "", NAME, self._extended)
            return
        if stored is not None and not stored["metadata"].get("deletionTimestamp"):
            await self._report_ready(stored)

    def _extended(self, obj: Object) -> Object:
        return {**obj, "spec": {**obj["spec"], "cidrs": list(self._ranges)}}

    async def _report_ready(self, stored: Object) -> None:
        condition = condition_of(stored, "Ready") or {}
        if stored["spec"]["cidrs"] != self._ranges:
            self._warn(f"the default ServiceCIDR {stored['spec']['cidrs']} does not match the flags {self._ranges}")
        elif condition.get("status") == "False":
            self._warn(f"the default ServiceCIDR is not ready: {condition.get('message')}")
        elif condition.get("status") != "True":
            await update_status(self._store, "", NAME, _ready, manager=CONTROLLER, operation="Apply")

    def _warn(self, what: str) -> None:
        if what not in self._reported:
            self._reported.add(what)
            logger.warning("%s", what)


def _ready(obj: Object) -> Object:
    message = "Kubernetes default Service CIDR is ready"
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": now(), "reason": "", "message": message}
    set_condition(obj, condition)
    return obj
