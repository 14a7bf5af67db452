"""Logical operators: they stop early, and an error on one side does not matter if the other side decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilothouse.cel.nodes import Call
from pilothouse.cel.steps import Frame, Run, Step
from pilothouse.cel.values import CostLimitExceeded, EvaluationError

if TYPE_CHECKING:
    from pilothouse.cel.planning import Planner


def plan_and(planner: Planner, node: Call) -> Step:
    return _plan_terms(planner, node, decided=False)


def plan_or(planner: Planner, node: Call) -> Step:
    return _plan_terms(planner, node, decided=True)


def _plan_terms(planner: Planner, node: Call, *, decided: bool) -> Step:
    steps = [planner.plan(argument) for argument in node.arguments]
    build = _two if len(steps) == 2 else _many
    return Step(build(steps, decided), steps[0].cost)


def _two(steps: list[Step], decided: bool) -> Run:
    left, right, cost = steps[0].run, steps[1].run, steps[1].cost

    def run(frame: Frame) -> Any:
        error: EvaluationError | None = None
        try:
            value = left(frame)
            if value is decided:
                return decided
            if value is not (not decided):
                error = EvaluationError("no such overload")
        except CostLimitExceeded:
            raise
        except EvaluationError as caught:
            error = caught
        frame[0].cost += cost
        if error is None:
            value = right(frame)
            if value.__class__ is not bool:
                raise EvaluationError("no such overload")
            return value
        try:
            value = right(frame)
        except CostLimitExceeded:
            raise
        except EvaluationError:
            raise error from None
        if value is decided:
            return decided
        raise error

    return run


def _many(steps: list[Step], decided: bool) -> Run:
    terms = [(step.run, step.cost if index else 0) for index, step in enumerate(steps)]
    undecided = not decided

    def run(frame: Frame) -> Any:
        error: EvaluationError | None = None
        tracker = frame[0]
        for term, cost in terms:
            tracker.cost += cost
            try:
                value = term(frame)
            except CostLimitExceeded:
                raise
            except EvaluationError as caught:
                error = error or caught
                continue
            if value is decided:
                return decided
            if value is not undecided:
                error = error or EvaluationError("no such overload")
        if error is not None:
            raise error
        return undecided

    return run


def plan_conditional(planner: Planner, node: Call) -> Step:
    condition, positive, negative = (planner.plan(argument) for argument in node.arguments)
    test, yes, no = condition.run, positive.run, negative.run
    yes_cost, no_cost = positive.inner_cost, negative.inner_cost

    def run(frame: Frame) -> object:
        value = test(frame)
        if value is True:
            frame[0].cost += yes_cost
            return yes(frame)
        if value is False:
            frame[0].cost += no_cost
            return no(frame)
        raise EvaluationError("no such overload")

    return Step(run, condition.cost)


def plan_not_strictly_false(planner: Planner, node: Call) -> Step:
    value = planner.plan(node.arguments[0])
    inner = value.run

    def run(frame: Frame) -> bool:
        try:
            return inner(frame) is not False
        except CostLimitExceeded:
            raise
        except EvaluationError:
            return True

    return Step(run, value.cost + 1)
