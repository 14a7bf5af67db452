"""Of several servers one acts: whoever holds a Lease of coordination.k8s.io leads, and renews it while it does.

    following ──acquired──► leading ──cannot renew in time, or taken by another──► following
                               └──stopped──► released, so that another can lead at once

The Lease is written as client-go's resource lock does: ``holderIdentity``, ``leaseDurationSeconds``, ``acquireTime``,
``renewTime``, ``leaseTransitions``. How old a foreign Lease is, is measured from when its last change was seen, by our
own clock: clocks of different machines are never compared. What leads is stopped before the lease could expire.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervised, Supervisor
from pilothouse.machinery.times import format_micro_time

logger = logging.getLogger(__name__)
Lead = Callable[[Supervisor], Awaitable[None]]
"""Starts what only the leader does, under a supervisor that is closed when the lead is lost."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease holds, how long renewing may take before the lead is given up, and how often it is tried."""

    lease_seconds: int = 15
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class LeaderLease:
    """Takes part in the election behind one Lease. ``identity`` is different in every process."""

    def __init__(
        self,
        leases: ResourceClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes | None = None,
        wait_for: asyncio.Event | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.name, self.identity = name, identity
        self._leases, self._namespace, self._clock = leases, namespace, clock
        self._times, self._wait_for = times or LeaseTimes(), wait_for
        self._observed: Object = {}
        """The Lease as it was last seen or written."""
        self._observed_at = 0.0
        self._running: Supervised | None = None
        self._changed = asyncio.Event()
        self._leading = False

    @property
    def leader(self) -> str:
        """The identity of who leads, as far as is known; empty if nobody does."""
        return (self._observed.get("spec") or {}).get("holderIdentity") or ""

    @property
    def is_leader(self) -> bool:
        """Whether this process leads: what it started as leader is running."""
        return self._leading

    async def wait_leading(self) -> None:
        """Return when this process leads."""
        while not self._leading:
            self._changed.clear()
            await self._changed.wait()

    def start(self, supervisor: Supervisor, lead: Lead) -> None:
        """Try to lead, once the awaited event has come, until stopped; ``lead`` is called each time it succeeds."""
        self._running = supervisor.run(f"leader lease {self.name}", lambda: self._run(supervisor, lead))

    async def stop(self) -> None:
        """Stop what leads, then give the lease away so that another can have it at once."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def _run(self, supervisor: Supervisor, lead: Lead) -> None:
        if self._wait_for is not None:
            await self._wait_for.wait()
        while True:
            while not await self.try_acquire_or_renew():
                await self._clock.sleep(self._times.retry_seconds)
            logger.info("%s leads by lease %s/%s", self.identity, self._namespace, self.name)
            await self._lead(supervisor.child(f"leader {self.name}"), lead)

    async def _lead(self, leading: Supervisor, lead: Lead) -> None:
        try:
            renewing = leading.spawn(f"renewing lease {self.name}", self._renew())
            await lead(leading)
            self._set_leading(True)
            await renewing
            logger.warning("%s no longer leads by lease %s/%s", self.identity, self._namespace, self.name)
        finally:
            # Controllers do not need each other in order to end, and whoever leads next waits for all of them.
            await leading.close(at_once=True)
            self._set_leading(False)
            await self._release()

    def _set_leading(self, leading: bool) -> None:
        self._leading = leading
        self._changed.set()

    async def _renew(self) -> None:
        """Return when the lease was lost or could not be renewed in time."""
        renewed = self._clock.monotonic()
        while self._clock.monotonic() - renewed < self._times.renew_seconds:
            await self._clock.sleep(self._times.retry_seconds)
            if await self._renew_in_time():
                renewed = self._clock.monotonic()
            elif self.leader != self.identity:
                return

    async def _renew_in_time(self) -> bool:
        try:
            async with asyncio.timeout(self._times.renew_seconds):
                return await self.try_acquire_or_renew()
        except TimeoutError:
            return False

    # The record

    async def try_acquire_or_renew(self) -> bool:
        """One attempt; whether the lease is ours now. Raises nothing that the server answers."""
        try:
            return await self._attempt()
        except errors.StatusError as error:
            logger.info("lease %s/%s: %s", self._namespace, self.name, error.message)
            return False

    async def _attempt(self) -> bool:
        if self.leader == self.identity and self._is_valid():
            try:
                await self._write(self._observed, renewed=True)
            except errors.StatusError as error:
                logger.debug("lease %s/%s: %s", self._namespace, self.name, error.message)
            else:
                return True
        try:
            found = await self._leases.get(self._namespace, self.name)
        except errors.NotFound:
            await self._create()
            return True
        self._observe(found)
        ours = self.leader == self.identity
        if self.leader and self._is_valid() and not ours:
            return False
        await self._write(found, renewed=ours)
        return True

    def _is_valid(self) -> bool:
        seconds = (self._observed.get("spec") or {}).get("leaseDurationSeconds") or 0
        return self._observed_at + seconds > self._clock.monotonic()

    def _observe(self, lease: Object) -> None:
        if lease.get("spec") != self._observed.get("spec"):
            self._observed_at = self._clock.monotonic()
        self._observed = lease

    def _wrote(self, lease: Object) -> None:
        self._observed, self._observed_at = lease, self._clock.monotonic()

    async def _create(self) -> None:
        lease = {"metadata": {"namespace": self._namespace, "name": self.name}, "spec": self._record(0)}
        self._wrote(await self._leases.create(lease))

    async def _write(self, lease: Object, *, renewed: bool) -> None:
        before: dict[str, Any] = lease.get("spec") or {}
        transitions = before.get("leaseTransitions") or 0
        record = self._record(transitions if renewed else transitions + 1)
        if renewed and before.get("acquireTime"):
            record["acquireTime"] = before["acquireTime"]
        self._wrote(await self._leases.update({**lease, "spec": {**before, **record}}))

    def _record(self, transitions: int) -> dict[str, Any]:
        at = format_micro_time(self._clock.now())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._times.lease_seconds,
            "acquireTime": at,
            "renewTime": at,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Let the lease go if it is ours. A writer that comes between is asked again, once."""
        for _ in range(2):
            try:
                found = await self._leases.get(self._namespace, self.name)
                self._observe(found)
                if self.leader != self.identity:
                    return
                at = format_micro_time(self._clock.now())
                freed = {**found["spec"], "leaseDurationSeconds": 1, "renewTime": at, "acquireTime": at}
                freed["holderIdentity"] = ""
                self._wrote(await self._leases.update({**found, "spec": freed}))
            except errors.Conflict:
                continue
            except errors.StatusError as error:
                logger.warning("lease %s/%s is not released: %s", self._namespace, self.name, error.message)
            return
