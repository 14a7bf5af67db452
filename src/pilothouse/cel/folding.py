"""Comprehensions: each macro has its own loop, which costs what kube-apiserver's general fold costs.

The general form would copy the growing list at every element; the loops below append. Every turn is charged, so a fold
over anything stops at the cost limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pilothouse.cel.nodes import Call, Comprehension, ListNode, Literal, MapNode, Node
from pilothouse.cel.steps import UNSET, Frame, Run, Step
from pilothouse.cel.values import (
    CostLimitExceeded,
    EvaluationError,
    fail,
    from_map_key,
    map_key,
    show,
)

if TYPE_CHECKING:
    from pilothouse.cel.planning import Planner

_GO_NAMES = {"str": "String", "int": "Int", "UInt": "Uint", "float": "Double", "bool": "Bool", "bytes": "Bytes"}


def plan_fold(planner: Planner, node: Comprehension) -> Step:
    if isinstance(node.range, ListNode) and not node.range.elements and _is_literal(node.condition, False):
        return _plan_bind(planner, node)
    source = planner.plan(node.range)
    names = [name for name in (node.first, node.second) if name]
    slots = [planner.new_slot() for _ in names]
    planner.scopes.append(dict(zip(names, slots, strict=True)))
    try:
        run, cost = _plan_loop(planner, node, source.run, _Loop(slots))
    finally:
        planner.scopes.pop()
    return Step(run, source.cost + cost)


class _Loop:
    """Where a loop keeps its variables."""

    def __init__(self, slots: list[int]) -> None:
        self.first = slots[0]
        self.second = slots[1] if len(slots) == 2 else 0

    def turns(self, frame: Frame, source: Any) -> Iterable[Any]:
        """Go through a list or a map, setting the variables before each turn."""
        first, second = self.first, self.second
        if not second:
            for item in _items(source):
                frame[first] = item
                yield item
        elif isinstance(source, list):
            for position, item in enumerate(source):
                frame[first], frame[second] = position, item
                yield position
        else:
            for key in _items(source):
                frame[first], frame[second] = key, source[map_key(key)]
                yield key


def _items(source: Any) -> Iterable[Any]:
    if isinstance(source, list):
        return source
    if isinstance(source, dict):
        return [from_map_key(key) for key in source]
    name = source.__class__.__name__
    return fail(f"got 'types.{_GO_NAMES.get(name, name)}', expected iterable type")


def _plan_loop(planner: Planner, node: Comprehension, source: Run, loop: _Loop) -> tuple[Run, int]:
    step = node.step
    assert isinstance(step, Call)
    if step.function == "_&&_":
        return _all(planner.plan(step.arguments[1]), source, loop, False), 1
    if step.function == "_||_":
        return _all(planner.plan(step.arguments[1]), source, loop, True), 1
    if isinstance(node.initial, Literal):
        return _exists_one(planner.plan(step.arguments[0]), source, loop), 2
    condition: Step | None = None
    if step.function == "_?_:_":
        condition = planner.plan(step.arguments[0])
        inner = step.arguments[1]
        assert isinstance(inner, Call)
        step = inner
    if isinstance(node.initial, MapNode):
        return _collect_map([planner.plan(item) for item in step.arguments[1:]], condition, source, loop), 1
    added = step.arguments[1]
    assert isinstance(added, ListNode)
    return _collect_list(planner.plan(added.elements[0]), condition, source, loop), 1


def _all(predicate: Step, source: Run, loop: _Loop, decided: bool) -> Run:
    test = predicate.run
    condition_cost = 3 if decided else 2
    turn_cost = condition_cost + 1 + predicate.cost
    turns, slot, simple = loop.turns, loop.first, not loop.second

    def run(frame: Frame) -> Any:
        tracker = frame[0]
        error: EvaluationError | None = None
        items = source(frame)
        plain = simple and isinstance(items, list)
        left = len(items) if isinstance(items, list | dict) else 0
        for item in items if plain else turns(frame, items):
            if plain:
                frame[slot] = item
            left -= 1
            tracker.cost += turn_cost if error is None else turn_cost + 1
            if tracker.cost > tracker.limit:
                raise CostLimitExceeded
            try:
                value = test(frame)
            except CostLimitExceeded:
                raise
            except EvaluationError as caught:
                error = error or caught
                continue
            if value is decided:
                if left:
                    tracker.cost += condition_cost
                return decided
            if value.__class__ is not bool:
                error = error or EvaluationError("no such overload")
        if error is not None:
            raise error
        return not decided

    return run


def _exists_one(predicate: Step, source: Run, loop: _Loop) -> Run:
    test, turn_cost, turns = predicate.run, predicate.cost, loop.turns

    def run(frame: Frame) -> bool:
        tracker, count = frame[0], 0
        for _ in turns(frame, source(frame)):
            tracker.charge(turn_cost)
            value = test(frame)
            if value is True:
                tracker.cost += 2
                count += 1
            elif value is not False:
                raise EvaluationError("no such overload")
        return count == 1

    return run


def _collect_list(item: Step, condition: Step | None, source: Run, loop: _Loop) -> Run:
    make, item_cost, turns = item.run, item.cost + 12, loop.turns
    test, test_cost = (condition.run, condition.cost) if condition is not None else (None, 0)

    def run(frame: Frame) -> list[Any]:
        tracker = frame[0]
        collected: list[Any] = []
        for _ in turns(frame, source(frame)):
            tracker.charge(test_cost)
            if test is not None:
                value = test(frame)
                if value is False:
                    continue
                if value is not True:
                    raise EvaluationError("no such overload")
            tracker.charge(item_cost)
            collected.append(make(frame))
        return collected

    return run


def _collect_map(parts: list[Step], condition: Step | None, source: Run, loop: _Loop) -> Run:
    runs = [part.run for part in parts]
    item_cost, turns = sum(part.cost for part in parts) + 2, loop.turns
    test, test_cost = (condition.run, condition.cost) if condition is not None else (None, 0)

    def run(frame: Frame) -> dict[Any, Any]:
        tracker = frame[0]
        collected: dict[Any, Any] = {}
        for _ in turns(frame, source(frame)):
            tracker.charge(test_cost)
            if test is not None:
                value = test(frame)
                if value is False:
                    continue
                if value is not True:
                    raise EvaluationError("no such overload")
            tracker.charge(item_cost)
            found = [part(frame) for part in runs]
            entries = {map_key(found[0]): found[1]} if len(found) == 2 else found[0]
            if not isinstance(entries, dict):
                fail("no such overload")
            _insert(collected, entries)
        return collected

    return run


def _insert(collected: dict[Any, Any], entries: dict[Any, Any]) -> None:
    for key, value in entries.items():
        if key in collected:
            fail(f"insert failed: key {show(from_map_key(key))} already exists")
        collected[key] = value


def _plan_bind(planner: Planner, node: Comprehension) -> Step:
    """`cel.bind` and its kin: the value is computed when first used and then kept."""
    initial = planner.plan(node.initial)
    slot = planner.new_slot()
    planner.lazy[slot] = initial
    planner.scopes.append({node.accumulator: slot})
    try:
        result = planner.plan(node.result)
    finally:
        planner.scopes.pop()
    finish = result.run

    def run(frame: Frame) -> Any:
        frame[slot] = UNSET
        return finish(frame)

    return Step(run, result.cost)


def _is_literal(node: Node, value: Any) -> bool:
    return isinstance(node, Literal) and node.value is value
