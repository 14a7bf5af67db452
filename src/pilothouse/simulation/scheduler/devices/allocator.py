"""Choosing devices for the claims of a pod on a node: the first choice with which all requests are met.

    claim by claim, request by request, device by device
        try the devices of the node's pools in their order          in use? selected? tolerated? enough left?
        go on with the next one                                     and come back here if that leads nowhere

Within one request devices are tried in one order only: any order of the same devices is the same choice. The search
is exhaustive, so it is bounded: an allocator tries so many devices on all nodes together, then it gives up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pilothouse.cel.devices import device_value
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices import capacity
from pilothouse.simulation.scheduler.devices.constraints import Constraint
from pilothouse.simulation.scheduler.devices.ledger import DeviceLedger
from pilothouse.simulation.scheduler.devices.pools import Device, DeviceId, Inventory, Pool, PoolId
from pilothouse.simulation.scheduler.devices.requests import AllocationFailed, ClassOf, Request, alternatives_of
from pilothouse.simulation.scheduler.snapshot import NodeInfo

MOST_RESULTS: Final = 32
_MOST_DEVICES: Final = 256
"""The search nests once for every device, so there is a limit; a node has no room for so many anyway."""
_MOST_STEPS: Final = 20_000
_MOST_LOOKS: Final = 1_000_000
_MOST_COST: Final = 10_000_000
"""Of all selectors: some seconds. Each may cost a tenth of that, and be asked about each device for each request."""


class NodeFailed(Exception):
    """No devices can be had on this node; the message says more than that."""


class Taken(NamedTuple):
    """A device for a request, and how much of it where it is shared."""

    request: Request
    device: Device
    amounts: capacity.Amounts


@dataclass(slots=True)
class Choice:
    """What a claim gets: its devices, and for each request the alternative that was taken."""

    devices: list[Taken] = field(default_factory=list)
    chosen: dict[int, Request] = field(default_factory=dict)


class _Wanted(NamedTuple):
    """A claim with what it asks for."""

    claim: Object
    requests: list[list[Request]]

    @property
    def constraints(self) -> list[Constraint]:
        stated = (self.claim["spec"].get("devices") or {}).get("constraints") or ()
        return [Constraint(each) for each in stated]


class Allocator:
    """Chooses devices for some claims as the cluster is now, for one node after the other."""

    def __init__(self, claims: Sequence[Object], class_of: ClassOf, inventory: Inventory, ledger: DeviceLedger) -> None:
        self._wanted = [_Wanted(claim, alternatives_of(claim, class_of)) for claim in claims]
        self._inventory, self.ledger = inventory, ledger
        self._steps = self._looks = self._cost = 0

    def choose(self, info: NodeInfo) -> list[Choice] | None:
        """The devices that each claim gets on a node, None where they cannot all be had.

        Raises AllocationFailed, or NodeFailed.
        """
        pools = self._inventory.pools(info)
        search = _Search(self, self._wanted, pools, info)
        if search.find():
            return search.choices
        if any(pool.is_invalid for pool in pools):
            raise NodeFailed("invalid resource pools were encountered")
        return None

    def count_look(self, info: NodeInfo) -> None:
        """One device is looked at; raises AllocationFailed where these are too many."""
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            raise _timed_out(info)

    def count_step(self, info: NodeInfo) -> None:
        """One device is tried; raises AllocationFailed where these are too many."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _timed_out(info)

    def count_cost(self, cost: int, info: NodeInfo) -> None:
        """A selector has been asked about a device; raises AllocationFailed where these cost too much."""
        self._cost += cost
        if self._cost > _MOST_COST:
            raise _timed_out(info)


def _timed_out(info: NodeInfo) -> AllocationFailed:
    return AllocationFailed(f"node {info.name}: timed out trying to allocate devices")


class _Search:
    """The search on one node, and what it has taken so far."""

    def __init__(self, allocator: Allocator, wanted: Sequence[_Wanted], pools: Sequence[Pool], info: NodeInfo) -> None:
        self._allocator, self._info, self._wanted = allocator, info, wanted
        self.ledger = allocator.ledger
        self._pools = pools
        self._candidates = [(device, pool) for pool in pools if pool.is_usable for device in pool.devices]
        self.constraints = [each.constraints for each in wanted]
        self._values: dict[DeviceId, Object] = {}
        self._selected: dict[tuple[str, str, DeviceId], bool] = {}
        self._all: dict[tuple[str, str], list[tuple[Device, Pool]]] = {}
        self.holders: dict[DeviceId, set[int]] = {}
        self.shares: dict[DeviceId, list[capacity.Amounts]] = {}
        self.counted: dict[tuple[PoolId, str, str], quantity.Quantity] = {}
        self.left: dict[PoolId, dict[tuple[str, str], quantity.Quantity]] = {}
        self.choices = [Choice() for _ in wanted]

    def find(self) -> bool:
        """Whether all claims can be met; ``choices`` tells how."""
        total = 0
        for each in self._wanted:
            least = sum(min(self._number(request) for request in parts) for parts in each.requests)
            if least > MOST_RESULTS:
                name = f"{each.claim['metadata']['namespace']}/{each.claim['metadata']['name']}"
                text = f"number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}"
                raise AllocationFailed(f"claim {name}: {text}")
            total += least
        if total > _MOST_DEVICES:
            raise AllocationFailed(f"number of requested devices {total} exceeds the limit of {_MOST_DEVICES} of a pod")
        return self._meet(0, 0)

    def _meet(self, claim: int, index: int) -> bool:
        """Meet the request and all that follow."""
        if claim == len(self._wanted):
            return True
        requests = self._wanted[claim].requests
        if index == len(requests):
            return self._meet(claim + 1, 0)
        for request in requests[index]:
            if len(self.choices[claim].devices) + self._number(request) > MOST_RESULTS:
                continue
            if request.wants_all and not self._number(request):
                continue
            self.choices[claim].chosen[index] = request
            if self._take(claim, index, request, 0, 0):
                return True
        return False

    def _take(self, claim: int, index: int, request: Request, number: int, start: int) -> bool:
        """Take one more device for the request, from those at ``start`` on, and go on."""
        if number == self._number(request):
            return self._meet(claim, index + 1)
        if request.wants_all:
            device, pool = self._all_devices(request)[number]
            with self._holding(claim, request, device, pool, must=True) as held:
                return held.keep(held.is_had and self._take(claim, index, request, number + 1, 0))
        for position in range(start, len(self._candidates)):
            self._allocator.count_look(self._info)
            device, pool = self._candidates[position]
            if not self.is_free(claim, request, device) or not self._is_selectable(request, device):
                continue
            self._allocator.count_step(self._info)
            with self._holding(claim, request, device, pool) as held:
                if held.keep(held.is_had and self._take(claim, index, request, number + 1, position + 1)):
                    return True
        return False

    def _number(self, request: Request) -> int:
        return len(self._all_devices(request)) if request.wants_all else request.number

    def _all_devices(self, request: Request) -> list[tuple[Device, Pool]]:
        key = (request.claim, request.full_name)
        found = self._all.get(key)
        if found is None:
            for pool in self._pools:
                if not pool.is_usable:
                    state = "being updated" if pool.is_incomplete else "invalid"
                    text = f"asks for all devices, but resource pool {pool.id} is currently {state}"
                    raise AllocationFailed(f"claim {request.claim}, request {request.name}: {text}")
            found = self._all[key] = [
                (device, pool) for device, pool in self._candidates if self._is_wanted(request, device)
            ]
        return found

    # One device

    def _is_wanted(self, request: Request, device: Device) -> bool:
        stated = device.spec.get("capacity") or {}
        if not self._is_selectable(request, device):
            return False
        amounts = capacity.consumed(request.capacity, stated)
        return amounts is not None and capacity.fits(amounts, stated)

    def _is_selectable(self, request: Request, device: Device) -> bool:
        key = (request.claim, request.full_name, device.id)
        known = self._selected.get(key)
        if known is None:
            value = self._values.get(device.id)
            if value is None:
                value = self._values[device.id] = device_value(device.id.driver, device.spec)
            chosen = request.selects(device, value, lambda cost: self._allocator.count_cost(cost, self._info))
            known = self._selected[key] = chosen and device.is_reachable(self._info)
        return known

    def is_free(self, claim: int, request: Request, device: Device) -> bool:
        """Whether nobody else has the device for himself, or nobody of this claim where it is to be administered."""
        holders = self.holders.get(device.id, ())
        if request.is_admin:
            return claim not in holders
        return not holders and not self.ledger.is_dedicated(device.id)

    @contextmanager
    def _holding(
        self, claim: int, request: Request, device: Device, pool: Pool, *, must: bool = False
    ) -> Iterator[_Held]:
        """Take a device if it can be had, and give it back afterwards unless it is to be kept."""
        held = _Held(self, claim, request, device, pool)
        held.take(must)
        try:
            yield held
        finally:
            held.give_back()


class _Held:
    """One device in the hands of a search, with all that its taking changed."""

    def __init__(self, search: _Search, claim: int, request: Request, device: Device, pool: Pool) -> None:
        self._search, self._claim, self._request, self._device, self._pool = search, claim, request, device, pool
        self._undo: list[tuple[str, object]] = []
        self.is_had = False
        self._is_kept = False

    def keep(self, success: bool) -> bool:
        """What the search has come to; with success the device stays taken."""
        self._is_kept = success
        return success

    def take(self, must: bool) -> None:
        """Take the device, if everything allows it."""
        search, device, request = self._search, self._device, self._request
        if not search.is_free(self._claim, request, device):
            return
        stated = device.spec.get("capacity") or {}
        amounts = capacity.consumed(request.capacity, stated)
        shares = search.shares.get(device.id, [])
        if amounts is None or not capacity.fits(amounts, stated, search.ledger.taken_of(device.id), *shares):
            return
        if not request.tolerates(device) or not self._count() or not self._agree(must):
            self.give_back()
            return
        if device.is_shared:
            search.shares.setdefault(device.id, []).append(amounts)
            self._undo.append(("share", None))
        else:
            search.holders.setdefault(device.id, set()).add(self._claim)
            self._undo.append(("holder", None))
        search.choices[self._claim].devices.append(Taken(request, device, amounts if device.is_shared else {}))
        self._undo.append(("result", None))
        self.is_had = True

    def give_back(self) -> None:
        """Undo what was done, the last thing first, unless the device is kept."""
        if self._is_kept:
            return
        search, device = self._search, self._device
        for what, subject in reversed(self._undo):
            if what == "result":
                search.choices[self._claim].devices.pop()
            elif what == "holder":
                search.holders[device.id].discard(self._claim)
            elif what == "share":
                search.shares[device.id].pop()
            elif isinstance(subject, Constraint):
                subject.give_back()
            else:
                self._consume(-1)
        self._undo.clear()

    def _agree(self, must: bool) -> bool:
        request = self._request
        for constraint in self._search.constraints[self._claim]:
            if not constraint.concerns(request.base_name, request.full_name):
                continue
            if not constraint.take(self._device):
                if must:
                    text = f"cannot add device {self._device.id} because a claim constraint would not be satisfied"
                    raise AllocationFailed(f"claim {request.claim}, request {request.name}: {text}")
                return False
            self._undo.append(("constraint", constraint))
        return True

    def _count(self) -> bool:
        """Draw on the pool's counters; a device that is shared already has done so."""
        search, device = self._search, self._device
        if not device.spec.get("consumesCounters"):
            return True
        if device.is_shared and (search.ledger.is_shared(device.id) or search.shares.get(device.id)):
            return True
        self._consume(1)
        self._undo.append(("counters", None))
        left = search.left.get(self._pool.id)
        if left is None:
            left = search.left[self._pool.id] = _left_in(self._pool, search.ledger)
        counted = search.counted
        return all(
            (self._pool.id, *name) not in counted or counted[(self._pool.id, *name)] <= amount
            for name, amount in left.items()
        )

    def _consume(self, sign: int) -> None:
        counted = self._search.counted
        for counter_set, counters in self._device.consumes.items():
            for name, amount in counters.items():
                key = (self._pool.id, counter_set, name)
                change = amount if sign > 0 else -amount
                counted[key] = counted[key] + change if key in counted else change


def _left_in(pool: Pool, ledger: DeviceLedger) -> dict[tuple[str, str], quantity.Quantity]:
    """What the counters of a pool have left beside the devices that are in use."""
    left = {(each, name): amount for each, counters in pool.counters.items() for name, amount in counters.items()}
    for device in (*pool.devices, *pool.elsewhere):
        if device.spec.get("consumesCounters") and ledger.is_allocated(device.id):
            for each, counters in device.consumes.items():
                for name, amount in counters.items():
                    left[(each, name)] = left[(each, name)] - amount
    return left
