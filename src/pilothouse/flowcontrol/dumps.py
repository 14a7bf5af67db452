"""The state of flow control as text, for people: a line a level, a queue, or a request.

What one process knows are rows; the text is made of those of all processes of a server. Each has levels and queues of
its own, so the numbers of a level are added up, while queues stand beside each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Final

from pilothouse.flowcontrol.tickets import Queue, Ticket
from pilothouse.flowcontrol.work import UNITS
from pilothouse.machinery.times import format_duration

if TYPE_CHECKING:
    from pilothouse.flowcontrol.controller import FlowController
    from pilothouse.flowcontrol.queue_set import QueueSet

_LEVEL_COLUMNS: Final = (
    "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
    "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests",
)  # fmt: skip
_QUEUE_COLUMNS: Final = (
    "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
    "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
)  # fmt: skip
_REQUEST_COLUMNS: Final = (
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
    "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
)  # fmt: skip
_DETAIL_COLUMNS: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_LEAST_WIDTH: Final = 8
_MOST_SHOWN: Final = 10_000


LevelRow = tuple[str, int, bool, bool, tuple[int, ...]]
"""Name, active queues, whether it is idle, whether it is quiescing, numbers of requests."""
Row = tuple[str, ...]


def level_rows(controller: FlowController) -> list[LevelRow]:
    """The priority levels of one process."""
    rows: list[LevelRow] = []
    for name, level in controller.levels.items():
        queues, totals = level.queues, level.queues.totals
        active = sum(1 for queue in queues.queues.values() if queue.waiting)
        numbers = (queues.waiting, queues.executing, totals.dispatched, totals.rejected, 0, totals.cancelled)
        rows.append((name, active, queues.is_idle, level.quiescing, numbers))
    return rows


def dump_levels(processes: Sequence[Sequence[LevelRow]]) -> str:
    """A line a priority level, by name: idle if it is so everywhere."""
    levels: dict[str, LevelRow] = {}
    for name, active, idle, quiescing, numbers in chain.from_iterable(processes):
        _, actives, idles, quiescings, sums = levels.get(name, (name, 0, True, False, (0,) * len(numbers)))
        added = tuple(map(add, sums, numbers))
        levels[name] = (name, actives + active, idles and idle, quiescings or quiescing, added)
    rows = [
        (name, str(active), _boolean(idle), _boolean(quiescing), *map(str, numbers))
        for name, active, idle, quiescing, numbers in sorted(levels.values())
    ]
    return _table(_LEVEL_COLUMNS, rows)


def queue_rows(controller: FlowController) -> list[Row]:
    """The queues of one process."""
    rows: list[Row] = []
    for name, level in controller.levels.items():
        for queue in _shown(level.queues):
            initial = sum(ticket.work.initial_seats for ticket in queue.waiting)
            most = sum(ticket.work.seats for ticket in queue.waiting)
            counts = (queue.index, len(queue.waiting), len(queue.executing), queue.seats)
            sums = (str(initial), str(most), _units(queue.units))
            rows.append((name, *map(str, counts), _units(queue.next_dispatch), *sums))
    return rows


def _made(queues: QueueSet) -> list[Queue]:
    """The queues in which somebody was, in their order."""
    return [queues.queues[index] for index in sorted(queues.queues)]


def _shown(queues: QueueSet) -> list[Queue]:
    """All queues, or those in which somebody was where nobody would read about all."""
    if queues.queue_count > _MOST_SHOWN:
        return _made(queues)
    return [queues.queues.get(index) or Queue(index) for index in range(queues.queue_count)]


def dump_queues(processes: Sequence[Sequence[Row]]) -> str:
    """A line a queue."""
    return _table(_QUEUE_COLUMNS, list(chain.from_iterable(processes)))


def request_rows(controller: FlowController, *, details: bool) -> list[Row]:
    """The requests that wait or execute in one process."""
    rows: list[Row] = []
    for level in controller.levels.values():
        for queue_index, index, ticket in _tickets(_made(level.queues), level.queues.queueless):
            row = (level.name, *_request_row(queue_index, index, ticket))
            rows.append((*row, *_details(ticket)) if details else row)
    return rows


def dump_requests(processes: Sequence[Sequence[Row]], *, details: bool) -> str:
    """A line a request that waits or executes."""
    columns = (*_REQUEST_COLUMNS, *_DETAIL_COLUMNS) if details else _REQUEST_COLUMNS
    return _table(columns, list(chain.from_iterable(processes)))


def _tickets(queues: Iterable[Queue], queueless: Iterable[Ticket]) -> Iterable[tuple[int, int, Ticket]]:
    for queue in queues:
        for index, ticket in enumerate(queue.waiting):
            yield queue.index, index, ticket
        for ticket in queue.executing:
            yield queue.index, -1, ticket
    for ticket in queueless:
        yield -1, -1, ticket


def _request_row(queue_index: int, index: int, ticket: Ticket) -> tuple[str, ...]:
    flow, work = ticket.flow, ticket.work
    return (
        flow.schema.name,
        str(queue_index),
        str(index),
        flow.distinguisher,
        _moment(ticket.arrived),
        str(work.initial_seats),
        str(work.final_seats),
        format_duration(round(work.final_seconds * 1e9)),
        "0001-01-01T00:00:00Z" if index >= 0 else _moment(ticket.started),
    )


def _details(ticket: Ticket) -> tuple[str, ...]:
    info, user = ticket.request.info, ticket.request.user
    version = f"{info.group}/{info.version}" if info.group else info.version
    return (
        user.name, info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource,
    )  # fmt: skip


def _moment(when: float) -> str:
    """A time of the monotonic clock, in nanoseconds without trailing zeros."""
    nanoseconds = time.time_ns() - round((time.monotonic() - when) * 1e9)
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    fraction = f".{rest:09}".rstrip("0").rstrip(".")
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + fraction + "Z"


def _units(value: int) -> str:
    return f"{value // UNITS}.{value % UNITS:08}ss"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells end with a comma and are padded to the width of their column, but for the last one."""
    cells = [[*(f"{cell}," for cell in row[:-1]), row[-1]] for row in (columns, *rows)]
    widths = [max(_LEAST_WIDTH, *(len(row[at]) + 1 for row in cells)) for at in range(len(columns) - 1)]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)) for row in cells)
    return "".join(f"{line}\n" for line in lines)
