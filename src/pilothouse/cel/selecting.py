"""Steps that reach into values: variables, fields, indexes, presence tests, and their optional forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilothouse.cel import arithmetic
from pilothouse.cel.nodes import Call, Literal, Select
from pilothouse.cel.steps import UNSET, Frame, Step
from pilothouse.cel.types import Type
from pilothouse.cel.values import NONE, EvaluationError, Invalid, Optional, fail

if TYPE_CHECKING:
    from pilothouse.cel.planning import Planner

_CONVERTED = frozenset({"bytes", "double", "duration", "int", "timestamp"})
"""Types of fields whose values may turn out not to be of them."""


def variable(slot: int) -> Step:
    def run(frame: Frame) -> Any:
        return frame[slot]

    return Step(run, 1, attribute=True)


def lazy_variable(slot: int, initial: Step) -> Step:
    compute, cost = initial.run, initial.cost

    def run(frame: Frame) -> Any:
        value = frame[slot]
        if value is UNSET:
            frame[0].charge(cost)
            value = frame[slot] = compute(frame)
        return value

    return Step(run, 1, attribute=True)


def select(operand: Step, kind: Type, key: str, node: Select) -> Step:
    """`operand.field` or `has(operand.field)`; a field of an object that holds null is absent."""
    null_is_absent = kind.kind == "struct"
    if node.test:
        return _test(operand, key, null_is_absent)
    if kind.kind == "opaque" and kind.name == "optional_type":
        return _optional(operand, key, kind.parameters[0].kind == "struct")
    run_operand, missing = operand.run, f"no such key: {node.field}"

    def run_struct(frame: Frame) -> Any:
        holder = run_operand(frame)
        try:
            value = holder[key]
        except (KeyError, TypeError):
            return _get(holder, key, missing)
        if value is None:
            raise EvaluationError(missing)
        return value

    def run_converted(frame: Frame) -> Any:
        value = run_struct(frame)
        return fail(value.message) if value.__class__ is Invalid else value

    def run_map(frame: Frame) -> Any:
        holder = run_operand(frame)
        try:
            return holder[key]
        except (KeyError, TypeError):
            return _get(holder, key, missing)

    run = run_map if not null_is_absent else run_converted if node.type.kind in _CONVERTED else run_struct
    return Step(run, _reach(operand), attribute=True)


def _reach(operand: Step) -> int:
    """The cost of one step into a value: what is no attribute becomes one first."""
    return operand.cost + (1 if operand.attribute else 2)


def _get(holder: Any, key: str, missing: str) -> Any:
    """Reach into what is no dict: values that look fields up themselves, and optionals met at run time."""
    if holder.__class__ is Optional:
        return _optional_field(holder, key, False)
    getter = getattr(holder, "cel_get", None)
    if getter is not None:
        return getter(key)
    return fail(missing)


def _test(operand: Step, key: str, null_is_absent: bool) -> Step:
    run_operand = operand.run

    def run(frame: Frame) -> bool:
        holder = run_operand(frame)
        if holder.__class__ is Optional:
            if not holder.present:
                return False
            holder = holder.value
        if isinstance(holder, dict):
            return key in holder and not (null_is_absent and holder[key] is None)
        tester = getattr(holder, "cel_has", None)
        return bool(tester(key)) if tester is not None else False

    return Step(run, operand.cost)


def _optional(operand: Step, key: str, null_is_absent: bool) -> Step:
    run_operand = operand.run

    def run(frame: Frame) -> Optional:
        found = _optional_field(run_operand(frame), key, null_is_absent)
        if found.present:
            frame[0].cost += 1
        return found

    return Step(run, _reach(operand) - 1, attribute=True)


def _optional_field(holder: Any, key: str, null_is_absent: bool) -> Optional:
    if holder.__class__ is Optional:
        if not holder.present:
            return NONE
        holder = holder.value
    if isinstance(holder, dict):
        if key in holder and not (null_is_absent and holder[key] is None):
            return Optional(holder[key])
        return NONE
    tester = getattr(holder, "cel_has", None)
    if tester is not None and tester(key):
        return Optional(holder.cel_get(key))
    return NONE


def plan_optional_select(planner: Planner, node: Call) -> Step:
    operand, field = node.arguments
    assert isinstance(field, Literal)
    kind = operand.type
    inner = kind.parameters[0] if kind.kind == "opaque" and kind.parameters else kind
    return _optional(planner.plan(operand), planner.key_of(kind, field.value), inner.kind == "struct")


def _find(holder: Any, key: Any) -> Optional:
    if holder.__class__ is Optional:
        if not holder.present:
            return NONE
        holder = holder.value
    found, value = arithmetic.find(holder, key)
    return Optional(value) if found else NONE


def plan_optional_index(planner: Planner, node: Call) -> Step:
    holder, key = (planner.plan(argument) for argument in node.arguments)
    run_holder, run_key = holder.run, key.run
    total = _reach(holder) + key.inner_cost
    return Step(lambda frame: _find(run_holder(frame), run_key(frame)), total, attribute=True)


def plan_index(planner: Planner, node: Call) -> Step:
    holder, key = (planner.plan(argument) for argument in node.arguments)
    run_holder, run_key = holder.run, key.run
    total = _reach(holder) + key.inner_cost

    def run(frame: Frame) -> Any:
        value = run_holder(frame)
        if value.__class__ is Optional:
            return _find(value, run_key(frame))
        return arithmetic.index(value, run_key(frame))

    return Step(run, total, attribute=True)


def plan_or_optional(planner: Planner, node: Call) -> Step:
    return _plan_or(planner, node, False)


def plan_or_value(planner: Planner, node: Call) -> Step:
    return _plan_or(planner, node, True)


def _plan_or(planner: Planner, node: Call, unwrap: bool) -> Step:
    assert node.target is not None
    first, other = planner.plan(node.target), planner.plan(node.arguments[0])
    run_first, run_other, other_cost = first.run, other.run, other.cost

    def run(frame: Frame) -> Any:
        value = run_first(frame)
        if value.__class__ is not Optional:
            fail("no such overload")
        if value.present:
            return value.value if unwrap else value
        frame[0].charge(other_cost)
        return run_other(frame)

    return Step(run, first.cost)
