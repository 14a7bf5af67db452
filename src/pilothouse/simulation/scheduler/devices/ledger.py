"""Which devices are in use, as claims say, and as this scheduler has decided but not yet written.

A decision counts from the moment it is made until its claim is written or the decision is taken back. What was written
counts at once: a view of the claim that is older than that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.pools import DeviceId


class _Use(NamedTuple):
    device: DeviceId
    is_share: bool
    capacity: Mapping[str, quantity.Quantity]


class DeviceLedger:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._claims: dict[str, tuple[int, Object]] = {}
        self._pending: dict[str, Object] = {}
        self._uses: dict[str, tuple[_Use, ...]] = {}
        self._dedicated: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, int] = {}
        self._capacity: dict[DeviceId, dict[str, quantity.Quantity]] = {}

    # Claims

    def see(self, claim: Object) -> bool:
        """A claim is like this now, or was written so; whether that is news and frees devices."""
        uid, version = claim["metadata"]["uid"], int(claim["metadata"]["resourceVersion"])
        known = self._claims.get(uid)
        if known is not None and known[0] > version:
            return False
        self._claims[uid] = (version, claim)
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is None and uid in self._pending:
            return False
        had_any = uid in self._uses
        self._count(uid, allocation)
        return had_any and allocation is None

    def forget(self, uid: str) -> bool:
        """A claim is gone; whether that frees devices."""
        self._claims.pop(uid, None)
        self._pending.pop(uid, None)
        had_any = uid in self._uses
        self._count(uid, None)
        return had_any

    def newest(self, claim: Object) -> Object:
        """A claim as it was last written, if the given view of it is older."""
        known = self._claims.get(claim["metadata"]["uid"])
        return known[1] if known is not None and known[0] > int(claim["metadata"]["resourceVersion"]) else claim

    # Decisions

    def decide(self, uid: str, allocation: Object) -> None:
        """The claim is to get these devices."""
        self._pending[uid] = allocation
        self._count(uid, allocation)

    def is_pending(self, uid: str) -> bool:
        """Whether devices were chosen for the claim and this is not written yet."""
        return uid in self._pending

    def settle(self, uid: str) -> bool:
        """The decision is written, or taken back: what the claim says counts again. Whether that frees devices."""
        self._pending.pop(uid, None)
        known = self._claims.get(uid)
        allocation = None if known is None else (known[1].get("status") or {}).get("allocation")
        had_any = uid in self._uses
        self._count(uid, allocation)
        return had_any and allocation is None

    # Devices

    def is_dedicated(self, device: DeviceId) -> bool:
        """Whether a claim has the device for itself."""
        return device in self._dedicated

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether any claim has the device or a part of it."""
        return device in self._dedicated or device in self._shares

    def is_shared(self, device: DeviceId) -> bool:
        """Whether any claim has a part of the device."""
        return device in self._shares

    def taken_of(self, device: DeviceId) -> Mapping[str, quantity.Quantity]:
        """How much of a shared device is taken."""
        return self._capacity.get(device, {})

    def _count(self, uid: str, allocation: Object | None) -> None:
        uses = None if allocation is None else tuple(_uses(allocation))
        if uses == self._uses.get(uid):
            return  # nor must it look for a moment as if the devices were free: choices may be made in a thread
        for use in self._uses.pop(uid, ()):
            self._change(use, -1)
        if uses is not None:
            self._uses[uid] = uses
            for use in uses:
                self._change(use, 1)

    def _change(self, use: _Use, sign: int) -> None:
        counts = self._shares if use.is_share else self._dedicated
        left = counts.get(use.device, 0) + sign
        if left:
            counts[use.device] = left
        else:
            del counts[use.device]
            self._capacity.pop(use.device, None)
        if use.capacity and left:
            taken = self._capacity.setdefault(use.device, {})
            for name, amount in use.capacity.items():
                change = amount if sign > 0 else -amount
                taken[name] = taken[name] + change if name in taken else change


def _uses(allocation: Object) -> Iterable[_Use]:
    """The devices of an allocation; those for administration are used by nobody."""
    for each in (allocation.get("devices") or {}).get("results") or ():
        if each.get("adminAccess"):
            continue
        amounts = {name: quantity.parse(str(text)) for name, text in (each.get("consumedCapacity") or {}).items()}
        yield _Use(DeviceId(each["driver"], each["pool"], each["device"]), "shareID" in each, amounts)
