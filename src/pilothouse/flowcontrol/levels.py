"""Priority levels: their share of the server's seats, what of it they lend and borrow, and their queues.

nominal   the level's part of all seats, by its shares
lower     nominal less what may be lent          upper   nominal and what may be borrowed
current   what the level has for now, adjusted every ten seconds to what levels could have used (see ``adjust``)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pilothouse.flowcontrol.allocation import Claim, divide
from pilothouse.flowcontrol.dropped_requests import DroppedRequests
from pilothouse.flowcontrol.occupancy import Demand, Occupancy, Utilization
from pilothouse.flowcontrol.queue_set import QueueSet, Queuing
from pilothouse.flowcontrol.schemas import EXEMPT
from pilothouse.flowcontrol.sharding import can_deal
from pilothouse.machinery.objects import Object

_SMOOTHING: Final = 0.977  # halves in five minutes
_MOST_SHARE_OF_SEATS: Final = 0.15


class LevelSpec(NamedTuple):
    """What an object says about a level."""

    name: str
    uid: str
    exempt: bool
    shares: int
    lendable_percent: int
    borrowing_percent: int | None
    queuing: Queuing


def read_level(obj: Object) -> LevelSpec | None:
    """Read an object; None where it contradicts itself, in which case it is taken for missing."""
    name, spec = obj["metadata"]["name"], obj["spec"]
    limited, exempt = spec.get("limited"), spec.get("exempt")
    is_exempt = spec.get("type") == "Exempt"
    if is_exempt != (exempt is not None) or is_exempt == (limited is not None) or is_exempt != (name == EXEMPT):
        return None
    uid = obj["metadata"].get("uid", "")
    if limited is None:
        given: dict[str, Any] = exempt or {}
        shares = given.get("nominalConcurrencyShares") or 0
        return LevelSpec(name, uid, True, shares, given.get("lendablePercent") or 0, 0, Queuing())
    queuing = _read_queuing(limited.get("limitResponse") or {})
    if queuing is None:
        return None
    return LevelSpec(
        name,
        uid,
        False,
        _or_default(limited.get("nominalConcurrencyShares"), 30),
        limited.get("lendablePercent") or 0,
        limited.get("borrowingLimitPercent"),
        queuing,
    )


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def _read_queuing(response: Object) -> Queuing | None:
    given = response.get("queuing")
    if (response.get("type") == "Reject") != (given is None):
        return None
    if given is None:
        return Queuing()
    queues, hand = _or_default(given.get("queues"), 64), _or_default(given.get("handSize"), 8)
    if not can_deal(queues, hand):
        return None
    return Queuing(queues, hand, _or_default(given.get("queueLengthLimit"), 50))


class PriorityLevel:
    """A level and its queues. It keeps both while its object changes, and its queues until they are empty."""

    def __init__(
        self, spec: LevelSpec, queues: QueueSet, demand: Demand, occupancy: Occupancy, shown: LevelUtilization
    ) -> None:
        self.spec, self.queues, self.demand, self.occupancy, self._shown = spec, queues, demand, occupancy, shown
        self.quiescing = False
        """No schema leads here any more; it goes when it is idle."""
        self.dropped = DroppedRequests()
        self.nominal = self.lower = self.upper = 0
        self.current = -1
        self.target = 0.0
        self.most_seats = 0
        """The most that one request may take; 0 where the level does not say."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def uid(self) -> str:
        return self.spec.uid

    def set_share(self, seats: int, share_sum: float) -> None:
        """Take a share of all seats."""
        spec = self.spec
        self.nominal = math.ceil(seats * spec.shares / share_sum) if share_sum else 0
        lendable = _round(self.nominal * spec.lendable_percent / 100)
        borrowable = seats if spec.borrowing_percent is None else _round(self.nominal * spec.borrowing_percent / 100)
        self.lower, self.upper = self.nominal - lendable, self.nominal + borrowable
        queuing = spec.queuing
        if queuing.queues:
            share = min(math.ceil(self.nominal * _MOST_SHARE_OF_SEATS), self.nominal // queuing.hand_size)
            self.most_seats = max(1, share)
        else:
            self.most_seats = 0
        if self.current < 0:
            self.current = self.nominal - lendable // 2

    def claim(self) -> Claim:
        """What it wants: what it could have used, and at least what it has used or may not lend."""
        least = max(self.lower, min(self.nominal, self.demand.high_watermark))
        return Claim(max(least, self.demand.smoothed), least, max(self.upper, least))

    def end_period(self) -> None:
        """Take stock of the demand."""
        self.queues.catch_up()
        self.occupancy.fold()
        self.demand.end_period(self.queues.state, _SMOOTHING)

    def set_current(self, seats: int, all_seats: int) -> None:
        """Have so many seats from now on."""
        self.current = seats
        self.queues.catch_up()
        self.occupancy.fold()
        queuing = self.spec.queuing
        room = max(1, queuing.length_limit) * max(1, queuing.queues)
        self._shown.set_limits(seats or max(1, round(all_seats / 10)), room)
        self.queues.configure(queuing, seats)


class LevelUtilization(NamedTuple):
    """The histograms that show how full a level is."""

    seats: Utilization
    executing: Utilization
    waiting: Utilization
    demand: Utilization

    def set_limits(self, seats: int, room: int) -> None:
        """What is full."""
        self.seats.limit = self.executing.limit = self.demand.limit = float(seats)
        self.waiting.limit = float(room)


def adjust(levels: Mapping[str, PriorityLevel], all_seats: int) -> float:
    """Give every level its current seats, by what it could have used since this was last done; returns the fair part.

    Exempt levels have what they use; the others share the rest: all get what they may not lend, then what they have
    used so far, then in proportion to their smoothed demand, each within its bounds.
    """
    total = sum(level.nominal for level in levels.values())
    for level in levels.values():
        level.end_period()
    exempt = {
        name: max(level.lower, level.demand.high_watermark) for name, level in levels.items() if level.spec.exempt
    }
    limited = [level for level in levels.values() if not level.spec.exempt]
    claims = [level.claim() for level in limited]
    left = total - sum(exempt.values())
    fair = 0.0
    lower, used = sum(level.lower for level in limited), sum(claim.lower for claim in claims)
    if left <= lower:
        shares = [float(level.lower) for level in limited]
    elif left <= used:
        part = (left - lower) / (used - lower)
        shares = [
            level.lower + (claim.lower - level.lower) * part for level, claim in zip(limited, claims, strict=True)
        ]
    else:
        divided = divide(total, claims)
        if divided is None:
            shares = [float(level.current) for level in limited]
        else:
            shares, fair = divided
    for level, claim, share in zip(limited, claims, shares, strict=True):
        level.target = claim.target
        level.set_current(_round(share), all_seats)
    for name, seats in exempt.items():
        levels[name].target = float(seats)
        levels[name].set_current(seats, all_seats)
    return fair


def _round(value: float) -> int:
    """Halves away from zero."""
    return math.floor(value + 0.5)
