"""The configuration as it stands, and the seats that are given out by it.

Every change of flow schemas or priority levels is taken in as a whole (``configure``). Levels keep their queues
across changes; one that is gone stays until the last of its requests has left. Without any object there are still the
mandatory ones, so that every request has a place.

Where a request goes is decided once for all that are alike (same user and groups, verb, resource, namespace, or path)
and kept until the configuration changes, so that an ordinary request costs a lookup.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from pilothouse.apis.flowcontrol.mandatory import FLOW_SCHEMAS, PRIORITY_LEVELS
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.flowcontrol.flows import Flow, FlowSeries
from pilothouse.flowcontrol.levels import LevelSpec, LevelUtilization, PriorityLevel, adjust, read_level
from pilothouse.flowcontrol.metrics import FlowControlMetrics
from pilothouse.flowcontrol.occupancy import Demand, Occupancy
from pilothouse.flowcontrol.pacing import TurnBudget
from pilothouse.flowcontrol.queue_set import QueueSet
from pilothouse.flowcontrol.schemas import CATCH_ALL, EXEMPT, FlowSchema, in_order
from pilothouse.flowcontrol.sharding import deal, flow_hash
from pilothouse.flowcontrol.tickets import Ticket
from pilothouse.flowcontrol.traffic import WRITE, Traffic
from pilothouse.flowcontrol.watch_counts import WatchCounts
from pilothouse.flowcontrol.work import ONE_SEAT, Sizes, WorkEstimator
from pilothouse.machinery.metrics import Instrument
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import User

logger = logging.getLogger(__name__)
ADJUST_SECONDS: Final = 10.0
_MOST_FLOWS: Final = 8192
_LONGEST_REMEMBERED: Final = 1024
"""Anybody may ask for a path of a megabyte, and for another one each time."""
_WRITING: Final = frozenset({"create", "update", "patch", "delete"})
_ESTIMATED: Final = frozenset({"list", "watch"})


class FlowController:
    """Priority and fairness of one server. ``seats`` is what all limited levels have together."""

    def __init__(
        self,
        seats: int,
        sizes: Sizes,
        gates: frozenset[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seats = seats
        self.watches = WatchCounts()
        self.levels: dict[str, PriorityLevel] = {}
        self.schemas: list[FlowSchema] = []
        self.fair_part = 0.0
        self.series: dict[tuple[str, str], FlowSeries] = {}
        self.metrics = FlowControlMetrics()
        self.traffic = Traffic(clock)
        self._clock = clock
        self._estimator = WorkEstimator(sizes, self.watches, gates)
        self._budget = TurnBudget(_call_soon)
        self._flows: dict[object, Flow] = {}
        self.configure((), ())

    # Configuration

    def configure(self, level_objects: Sequence[Object], schema_objects: Sequence[Object]) -> None:
        """Take in all objects there are."""
        specs = {spec.name: spec for spec in map(read_level, level_objects) if spec is not None}
        self.schemas = _with_mandatory(in_order(map(FlowSchema, schema_objects), specs))
        for name in (EXEMPT, CATCH_ALL):
            if name not in specs:
                specs[name] = self.levels[name].spec if name in self.levels else _mandatory_level(name)
        self._update_levels(specs)
        self._flows.clear()
        self._share_seats()

    def _update_levels(self, specs: dict[str, LevelSpec]) -> None:
        kept: dict[str, PriorityLevel] = {}
        for name, spec in specs.items():
            level = self.levels.get(name)
            if level is None:
                level = self._new_level(spec)
            level.spec, level.quiescing = spec, False
            kept[name] = level
        for name, level in self.levels.items():
            if name not in kept and not level.queues.is_idle:
                level.quiescing = True
                kept[name] = level
        self.levels = kept

    def _new_level(self, spec: LevelSpec) -> PriorityLevel:
        demand = Demand()
        shown: LevelUtilization = self.metrics.utilization(spec.name)
        occupancy = Occupancy((demand, *shown))
        queues = QueueSet(self._budget, occupancy, self.traffic, _call_later, exempt=spec.exempt, clock=self._clock)
        return PriorityLevel(spec, queues, demand, occupancy, shown)

    def _share_seats(self) -> None:
        shares = sum(level.spec.shares for level in self.levels.values())
        for level in self.levels.values():
            level.set_share(self.seats, shares)
        seats = sum(level.nominal for level in self.levels.values())
        room = sum(level.spec.queuing.queues * level.spec.queuing.length_limit for level in self.levels.values())
        self.traffic.set_limits(seats, seats, room, room)
        self.adjust()

    def adjust(self) -> None:
        """Let levels borrow from each other by their recent demand."""
        self._remove_idle_levels()
        self.fair_part = adjust(self.levels, self.seats)

    def _remove_idle_levels(self) -> None:
        gone = [name for name, level in self.levels.items() if level.quiescing and level.queues.is_idle]
        for name in gone:
            del self.levels[name]
        if gone:
            self._share_seats()

    # Requests

    def classify(self, user: User, info: RequestInfo) -> Flow:
        """Where a request goes."""
        if info.is_resource:
            key: object = (
                user.name, user.groups, info.verb, info.group, info.resource, info.subresource, info.namespace,
            )  # fmt: skip
        else:
            key = (user.name, user.groups, info.verb, info.path)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._make_flow(user, info)
            if len(info.path) <= _LONGEST_REMEMBERED:
                if len(self._flows) >= _MOST_FLOWS:
                    self._flows.clear()
                self._flows[key] = flow
        return flow

    def _make_flow(self, user: User, info: RequestInfo) -> Flow:
        found = next((each for each in self.schemas if each.matches(user, info)), None)
        if found is None:  # somebody in neither of the two groups that everybody is in one of
            found = next(each for each in self.schemas if each.name == CATCH_ALL)
        level = self.levels[found.level]
        queuing, distinguisher = level.spec.queuing, ""
        hand: tuple[int, ...] = ()
        if queuing.queues > 1:
            distinguisher = found.distinguish(user, info)
            hand = deal(flow_hash(found.name, distinguisher), queuing.queues, queuing.hand_size)
        elif queuing.queues:
            hand = (0,)
        names = (level.name, found.name)
        series = self.series.get(names)
        if series is None:
            series = self.series[names] = FlowSeries(self.metrics.flows, *names, exempt=level.spec.exempt)
        return Flow(found, level, distinguisher, hand, series)

    def start(self, flow: Flow, request: APIRequest) -> Ticket | None:
        """A ticket for a request, which may have to wait; None where it is turned away."""
        verb, level = request.info.verb, flow.level
        if verb == "get":
            return level.queues.start(flow, ONE_SEAT, request)
        if verb in _WRITING:
            work, watches = self._estimator.estimate_write(request, level.most_seats)
            flow.series.woken_watches.observe(watches)
            return level.queues.start(flow, work, request, WRITE)
        if verb in _ESTIMATED:
            return level.queues.start(flow, self._estimator.estimate(request, level.most_seats), request)
        return level.queues.start(flow, ONE_SEAT, request, WRITE)

    # Showing

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return [*self.metrics.instruments(self), *self.traffic.instruments()]

    def fold_series(self) -> None:
        """Bring the histograms of flows up to date."""
        for series in self.series.values():
            series.fold()

    def catch_up(self) -> None:
        """Bring what is made of states up to date."""
        for level in self.levels.values():
            level.queues.catch_up()
            level.occupancy.fold()


def _with_mandatory(schemas: list[FlowSchema]) -> list[FlowSchema]:
    names = {schema.name for schema in schemas}
    first = [] if EXEMPT in names else [_mandatory_schema(EXEMPT)]
    last = [] if CATCH_ALL in names else [_mandatory_schema(CATCH_ALL)]
    return [*first, *schemas, *last]


def _mandatory_schema(name: str) -> FlowSchema:
    return FlowSchema({"metadata": {"name": name}, "spec": FLOW_SCHEMAS[name]})


def _mandatory_level(name: str) -> LevelSpec:
    spec = read_level({"metadata": {"name": name}, "spec": PRIORITY_LEVELS[name]})
    assert spec is not None
    return spec


def _call_soon(callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(callback)


def _call_later(seconds: float, callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, callback)
