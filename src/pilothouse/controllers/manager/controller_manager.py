"""Runs the chosen controllers while this process holds the lease ``kube-controller-manager``.

A controller that cannot be made is logged and left out; the others run, and the health check names what is missing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Sequence

from pilothouse.controllers.manager.catalogue import Row
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.leader_lease import LeaderLease
from pilothouse.machinery.supervision import Supervisor

logger = logging.getLogger(__name__)


class ControllerManager:
    """Starts controllers when it leads and ends them when it does not."""

    def __init__(
        self, context: ControllerContext, rows: Sequence[Row], identity: str, *, wait_for: asyncio.Event | None = None
    ) -> None:
        self._context, self._rows = context, rows
        leases = context.clients.controller_manager().of("coordination.k8s.io", "v1", "leases")
        self._lease = LeaderLease(
            leases, "kube-system", "kube-controller-manager", identity, wait_for=wait_for, clock=context.clock
        )
        self._failed: dict[str, str] = {}

    def start(self) -> None:
        """Take part in the election, from when the awaited event has come."""
        self._lease.start(self._context.supervisor, self._lead)

    async def stop(self) -> None:
        """End the controllers and let go of the lease."""
        await self._lease.stop()

    def error(self) -> str:
        """Which controllers could not be made, and why; nothing if all run or another process leads."""
        return "; ".join(f"{name}: {error}" for name, error in self._failed.items())

    async def _lead(self, supervisor: Supervisor) -> None:
        context = dataclasses.replace(self._context, supervisor=supervisor)
        self._failed.clear()
        for row in self._rows:
            try:
                start = await asyncio.to_thread(row.load)
                start(context)
            except Exception as error:
                logger.exception("controller %s cannot be started", row.name)
                self._failed[row.name] = str(error)
