"""Node ports, kept as one bitmap for the whole range under one key, in kube-apiserver's form.

A change reads the bitmap, works on a copy and writes it back only if nobody else has written meanwhile; otherwise it
starts over. Within one process changes wait for each other, so conflicts come from other servers only. The bitmap is
remembered between changes: whoever is refused on a remembered one is tried again on a fresh one first.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from random import Random
from typing import Final, Protocol, TypeVar

from pilothouse.controlplane.allocation.metrics import AllocationMetrics
from pilothouse.controlplane.allocation.ranges import PortRange, PortSet
from pilothouse.machinery.workers import weighed
from pilothouse.registry.store.stored_form import MediaType, read_plain, write_plain
from pilothouse.storage.backends.contract import Backend, Conflict, KeyExists

KEY: Final = "ranges/servicenodeports"
T = TypeVar("T")


class PortLedger(Protocol):
    """Where the bitmap is kept."""

    async def read(self) -> tuple[str, int, int]:
        """(range, bitmap, version); version 0 when nothing is kept yet."""

    async def write(self, range_: str, bits: int, version: int) -> int | None:
        """Replace what was read at ``version``; gives the new version, None when somebody else was faster."""


class StoredLedger:
    """The bitmap as a RangeAllocation object in the store."""

    def __init__(self, backend: Backend, root: str = "/registry", media: MediaType = MediaType.OWN_JSON) -> None:
        self._backend, self._media = backend, media
        self._key = f"{root}/{KEY}"

    async def read(self) -> tuple[str, int, int]:
        found = await self._backend.get(self._key)
        if found is None:
            return "", 0, 0
        obj = read_plain(found.value)
        return obj.get("range", ""), int.from_bytes(base64.b64decode(obj.get("data") or ""), "big"), found.revision

    async def write(self, range_: str, bits: int, version: int) -> int | None:
        data = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode()
        obj = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": range_, "data": data}
        value = write_plain(obj, self._media)
        try:
            if version:
                return await self._backend.update(self._key, value, version)
            return await self._backend.create(self._key, value)
        except (Conflict, KeyExists):
            return None


class NodePorts:
    """All changes of the allocated ports of one process."""

    def __init__(
        self,
        range_: PortRange,
        ledger: PortLedger,
        rng: Random | None = None,
        metrics: AllocationMetrics | None = None,
    ) -> None:
        self.range = range_
        self.metrics = metrics or AllocationMetrics()
        self._ledger = ledger
        self._rng = rng or Random()
        self._lock = asyncio.Lock()
        self._known: tuple[PortSet, int] | None = None

    async def peek(self) -> PortSet:
        """The ports as they are now; changing the answer changes nothing."""
        async with self._lock:
            self._known = None
            return (await self._current())[0].copy()

    async def change(self, work: Callable[[PortSet], T], weight: int = 0) -> T:
        """Let ``work`` change the ports and keep the result.

        It may be called again, on a fresh set, and must change nothing else. What it raises is raised. It is called
        aside where its input is long, of ``weight`` bytes.
        """
        async with self._lock:
            while True:
                remembered = self._known is not None
                ports, version = await self._current()
                trial = ports.copy()
                try:
                    result = await weighed(weight, work, trial)
                except Exception:
                    if not remembered:
                        self.metrics.asked_ports(trial)
                        raise
                    self._known = None
                    continue
                if trial.bits == ports.bits and version:
                    return result
                written = await self._ledger.write(str(self.range), trial.bits, version)
                self._known = None if written is None else (trial, written)
                if written is not None:
                    self.metrics.asked_ports(trial)
                    self.metrics.changed_ports(trial)
                    return result

    async def _current(self) -> tuple[PortSet, int]:
        if self._known is None:
            stored, bits, version = await self._ledger.read()
            ports = PortSet(self.range, bits, self._rng)
            if stored and stored != str(self.range):
                ports = _moved(PortSet(PortRange.parse(stored), bits), self.range, self._rng)
            self._known = ports, version
        return self._known


def _moved(old: PortSet, range_: PortRange, rng: Random) -> PortSet:
    """The allocated ports under another range: those outside it can no longer be allocated and are forgotten."""
    ports = PortSet(range_, 0, rng)
    for port in old:
        if port in range_:
            ports.allocate(port)
    return ports
