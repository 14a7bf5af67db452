"""How much work a request will be: the seats it takes while it is served, and those it takes afterwards.

    get, other paths      1 seat
    list                  by the bytes that it will hold at a time (or by objects), from the size of the resource
    watch                 as a list where it begins with what there is, else 1 seat; both only until it has begun
    writes                1 seat, and afterwards a tenth of a seat for 5 ms for each watch they wake, from ten on

Work is counted in units of 10^-8 seat-seconds, in whole numbers: sums stay exact however long the server runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.watch_counts import WatchCounts
from pilothouse.machinery.errors import StatusError

UNITS: Final = 100_000_000
SERVICE_UNITS: Final = 3 * UNITS // 1000
"""How long a request takes, for all that is known before: 3 ms."""
_OBJECTS_A_SEAT: Final = 100
_BYTES_A_SEAT: Final = 100_000
_MOST_CACHED_BYTES: Final = 1_000_000
_LARGEST_OBJECT: Final = 1_500_000
_WATCHES_A_SEAT: Final = 10
_EVENT_SECONDS: Final = 0.005
_MOST_LIST_SEATS_BY_COUNT: Final = 10
_MOST_LIST_SEATS_BY_SIZE: Final = 100
_MOST_WRITE_SEATS: Final = 10


class Size(NamedTuple):
    """How many objects a resource has, and how large they are on average."""

    objects: int
    average_bytes: int


Sizes = Callable[[str, str], Size | None]
"""The size of a resource by group and name; None where it is not kept here."""


class Work:
    """An estimate. Never changed once made."""

    __slots__ = ("final_seats", "final_seconds", "final_units", "initial_seats", "seats", "units")

    def __init__(self, initial_seats: int, final_seats: int = 0, final_seconds: float = 0.0) -> None:
        self.initial_seats, self.final_seats, self.final_seconds = initial_seats, final_seats, final_seconds
        self.seats = max(initial_seats, final_seats)
        self.final_units = round(final_seats * final_seconds * UNITS)
        self.units = initial_seats * SERVICE_UNITS + self.final_units

    def narrowed(self, limit: int) -> Work:
        """The same work by fewer seats afterwards, for longer, where there are not as many."""
        if self.final_seats <= limit or limit < 1:
            return self
        return Work(self.initial_seats, limit, self.final_units / UNITS / limit)


ONE_SEAT: Final = Work(1)


class WorkEstimator:
    """Estimates from what is known about resources and watches."""

    def __init__(self, sizes: Sizes, watches: WatchCounts, gates: frozenset[str]) -> None:
        self._sizes, self._watches = sizes, watches
        self._by_size = "SizeBasedListCostEstimate" in gates
        self._watch_lists = "WatchList" in gates
        self._most_list_seats = _MOST_LIST_SEATS_BY_SIZE if self._by_size else _MOST_LIST_SEATS_BY_COUNT

    def estimate(self, request: APIRequest, level_seats: int) -> Work:
        """For a request to a level that gives one request no more than so many seats (0: it does not say)."""
        verb = request.info.verb
        if verb == "list" or (verb == "watch" and self._watch_lists):
            seats = self._list_seats(request, _least(level_seats, self._most_list_seats))
            return ONE_SEAT if seats == 1 else Work(seats)
        return ONE_SEAT

    def estimate_write(self, request: APIRequest, level_seats: int) -> tuple[Work, int]:
        """For a write; also the watches it wakes."""
        info = request.info
        if info.subresource == "token" and info.resource == "serviceaccounts":
            return ONE_SEAT, 0
        watches = self._watches.woken_by(info)
        if watches < _WATCHES_A_SEAT:
            return ONE_SEAT, watches
        wanted = math.ceil(watches / _WATCHES_A_SEAT)
        seats = min(wanted, _least(level_seats, _MOST_WRITE_SEATS))
        return Work(1, seats, wanted * _EVENT_SECONDS / seats), watches

    def _list_seats(self, request: APIRequest, most: int) -> int:
        info, options = request.info, request.options
        from_version = options.text("resourceVersion") not in ("", "0")
        if info.verb == "watch" and from_version and not options.boolean("sendInitialEvents"):
            return 1
        try:
            limit = options.integer("limit") or 0
        except StatusError:
            return most  # it will be refused, and that is consistent with kube-apiserver
        size = self._sizes(info.group, info.resource)
        if size is None:
            return 1
        cached = info.verb == "watch" or _is_cached(request, limit)
        selected = bool(options.text("fieldSelector") or options.text("labelSelector"))
        count = _seats_by_size if self._by_size else _seats_by_count
        return max(1, min(most, count(size, limit, cached, selected, bool(info.name))))


def _is_cached(request: APIRequest, limit: int) -> bool:
    """Whether a list is of the present, as kube-apiserver tells before it looks at its cache."""
    options = request.options
    match options.text("resourceVersionMatch"):
        case "NotOlderThan":
            return True
        case "":
            exact = limit > 0 and options.text("resourceVersion") not in ("", "0")
            return not options.text("continue") and not exact
        case _:
            return False


def _seats_by_size(size: Size, limit: int, cached: bool, selected: bool, single: bool) -> int:
    limited = min(limit, size.objects) if limit > 0 else size.objects
    objects = 1 if single else limited
    if not single and not cached and selected:
        objects = max(limited, size.objects // 2)
    average = size.average_bytes or (_LARGEST_OBJECT if size.objects else 0)
    held = objects * average
    return math.ceil((min(held, _MOST_CACHED_BYTES) if cached else held) / _BYTES_A_SEAT)


def _seats_by_count(size: Size, limit: int, cached: bool, selected: bool, single: bool) -> int:
    limited = min(limit, size.objects) if limit > 0 else size.objects
    if single:
        objects = 1
    elif cached:
        objects = size.objects
    else:
        objects = size.objects + limited if selected else 2 * limited
    return math.ceil(objects / _OBJECTS_A_SEAT)


def _least(level_seats: int, limit: int) -> int:
    return min(level_seats, limit) if level_seats else limit
