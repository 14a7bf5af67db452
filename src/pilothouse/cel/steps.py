"""What a planned expression is made of: steps that run on a frame and know what they always cost.

A frame is a list: the tracker of costs first, then the variables of the expression, then its local variables. A step's
`cost` is charged by whoever runs it; only what depends on values is charged while running. So straight code pays
nothing for being counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pilothouse.cel.values import CostLimitExceeded
from pilothouse.machinery.workers import ABANDONED, PATIENCE, NeedsTime, checkpoint

Frame = list[Any]
Run = Callable[[Frame], Any]

MAX_WORK = 50_000_000
MAX_LIST = 2_000_000
UNSET: Any = object()


class Tracker:
    """Counts the cost of one evaluation and stops it at the limit.

    `work` counts what kube-apiserver gets for nothing and Python does not: elements copied when lists are joined.
    """

    __slots__ = ("_bound", "cost", "limit", "work")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit
        self.work = 0
        patience = PATIENCE.left
        self._bound = limit if patience is None or patience > limit else patience

    def charge(self, cost: int) -> None:
        self.cost += cost
        if ABANDONED:
            checkpoint()
        if self.cost > self._bound:
            if self.cost > self.limit:
                raise CostLimitExceeded
            raise NeedsTime

    def copy(self, elements: int) -> None:
        self.work += elements
        if ABANDONED:
            checkpoint()
        PATIENCE.spend(elements // 10)
        if self.work > MAX_WORK or elements > MAX_LIST:
            raise CostLimitExceeded


class Step(NamedTuple):
    """A planned node; a constant one keeps its value.

    `attribute` marks a variable and what is reached from it by fields and indexes. Where such a step chooses a key or
    is a branch of a condition, kube-apiserver does not count reaching its variable.
    """

    run: Run
    cost: int
    constant: bool = False
    value: Any = None
    attribute: bool = False

    @property
    def inner_cost(self) -> int:
        """The cost as a key or a branch."""
        return self.cost - 1 if self.attribute else self.cost


def constant(value: Any) -> Step:
    def run(frame: Frame) -> Any:
        return value

    return Step(run, 0, True, value)
