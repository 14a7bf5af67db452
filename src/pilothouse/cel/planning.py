"""Plans a checked expression: turns the tree into closures that evaluate it.

Types found by the checker choose narrow implementations; where a type is dynamic, values are looked at when they come.
Constant lists, maps and conversions are computed once, as in kube-apiserver, which makes them free at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pilothouse.cel import arithmetic, folding, logic, selecting
from pilothouse.cel.declarations import Function, Overload
from pilothouse.cel.nodes import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from pilothouse.cel.run_costs import COSTED_BY_RESULT, COUNTED_LISTS, run_cost
from pilothouse.cel.steps import Frame, Run, Step, constant
from pilothouse.cel.types import Type, is_dyn
from pilothouse.cel.values import (
    CostLimitExceeded,
    EvaluationError,
    Message,
    Optional,
    fail,
    map_key,
    show,
    type_name,
)
from pilothouse.machinery.patterns import PatternError, compile_pattern

if TYPE_CHECKING:
    from pilothouse.cel.environment import Environment

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_INT_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add_int64": arithmetic.add_ints,
    "subtract_int64": arithmetic.subtract_ints,
    "multiply_int64": arithmetic.multiply_ints,
    "divide_int64": arithmetic.divide_ints,
    "modulo_int64": arithmetic.modulo_ints,
    "divide_double": arithmetic.divide_doubles,
}
_PLAIN_ORDER = frozenset({"int", "string", "bytes", "bool", "uint"})
_PRIMITIVES = frozenset({"int", "string", "bytes", "bool", "double", "uint"})


class InstantiationError(Exception):
    """A constant part of the expression cannot be computed."""


class Planner:
    """Plans one expression; `slots` numbers the variables it uses."""

    def __init__(self, environment: Environment, variables: tuple[str, ...]) -> None:
        self.environment = environment
        self.scopes: list[dict[str, int]] = [{name: index + 1 for index, name in enumerate(variables)}]
        self.size = len(variables) + 1
        self.lazy: dict[int, Step] = {}
        self._planned: dict[int, Step] = {}

    def plan(self, node: Node) -> Step:
        step = self._planned.get(id(node))
        if step is None:
            step = _PLANNERS[node.__class__](self, node)
            self._planned[id(node)] = step
        return step

    def new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    def _literal(self, node: Literal) -> Step:
        return constant(node.value)

    def _ident(self, node: Ident) -> Step:
        if node.constant is not None:
            return constant(node.constant)
        for scope in reversed(self.scopes):
            if node.name in scope:
                slot = scope[node.name]
                if slot in self.lazy:
                    return selecting.lazy_variable(slot, self.lazy[slot])
                return selecting.variable(slot)
        raise InstantiationError(f"no such attribute(s): {node.name}")

    def _select(self, node: Select) -> Step:
        if node.ident is not None:
            return self._ident(node.ident)
        operand = self.plan(node.operand)
        return selecting.select(operand, node.operand.type, self.key_of(node.operand.type, node.field), node)

    def key_of(self, kind: Type, field: str) -> str:
        if kind.kind == "opaque" and kind.parameters:
            kind = kind.parameters[0]
        struct = self.environment.find_struct(kind.name) if kind.kind == "struct" else None
        return struct.property(field) if struct is not None else field

    def _call(self, node: Call) -> Step:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        arguments = node.arguments if node.target is None else [node.target, *node.arguments]
        steps = [self.plan(argument) for argument in arguments]
        function = self.environment.functions[node.function]
        implementation = self._implementation(node, function, arguments)
        if node.function in _CONVERSIONS and len(steps) == 1 and steps[0].constant:
            try:
                return constant(implementation(steps[0].value))
            except EvaluationError as error:
                raise InstantiationError(str(error)) from None
        if node.function in ("find", "findAll") and steps[1].constant:
            _check_pattern(steps[1].value)
        if node.function == "@in" and steps[1].constant and isinstance(steps[1].value, list):
            member = _constant_membership(steps[0], steps[1].value)
            if member is not None:
                return member
        overload = node.overloads[0] if len(node.overloads) == 1 else None
        cost = run_cost(node.function, overload, [argument.type for argument in arguments])
        return self._invoke(implementation, steps, cost, node)

    def _implementation(self, node: Call, function: Function, arguments: list[Node]) -> Callable[..., Any]:
        overloads: list[Overload] = node.overloads
        if len(overloads) == 1 and overloads[0].id in _INT_OPERATORS and _are_static(arguments):
            return _INT_OPERATORS[overloads[0].id]
        if function.any_overload is not None:
            return function.any_overload
        if len(overloads) == 1 and _are_static(arguments):
            implementation = overloads[0].implementation
            assert implementation is not None
            return implementation
        member = node.target is not None
        return _dispatcher(function.name, [item for item in function.overloads if item.member == member])

    def _invoke(self, implementation: Callable[..., Any], steps: list[Step], cost: Any, node: Call) -> Step:
        total = sum(step.cost for step in steps)
        if isinstance(cost, int):
            fast = _fast_operator(node, steps)
            run = fast if fast is not None else _call(implementation, [step.run for step in steps])
            return Step(run, total + cost)
        return Step(_costed_call(implementation, [step.run for step in steps], cost, node.function), total)

    def _list(self, node: ListNode) -> Step:
        values = [item.value for item in node.elements if isinstance(item, Literal)]
        if len(values) == len(node.elements) and not node.optional:
            return constant(values)
        steps = [self.plan(item) for item in node.elements]
        if all(step.constant for step in steps) and not node.optional:
            return constant([step.value for step in steps])
        runs = [step.run for step in steps]
        if node.optional:
            run = _optional_list(runs, node.optional)
        elif len(runs) == 1:
            only = runs[0]

            def run(frame: Frame) -> Any:
                return [only(frame)]
        else:

            def run(frame: Frame) -> Any:
                return [item(frame) for item in runs]

        return Step(run, 10 + sum(step.cost for step in steps))

    def _map(self, node: MapNode) -> Step:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        runs = [(key.run, value.run, optional) for key, value, optional in entries]

        def run(frame: Frame) -> Any:
            built: dict[Any, Any] = {}
            for key, value, optional in runs:
                found = key(frame)
                _put(built, map_key(found), value(frame), optional, show(found))
            return built

        if all(key.constant and value.constant and not optional for key, value, optional in entries):
            return constant(run([]))
        return Step(run, 30 + sum(key.cost + value.cost for key, value, _ in entries))

    def _struct(self, node: StructNode) -> Step:
        struct = self.environment.find_struct(node.name)
        assert struct is not None
        kind = struct.type
        steps = [(struct.property(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        runs = [(name, step.run, optional) for name, step, optional in steps]

        def run(frame: Frame) -> Any:
            built: dict[str, Any] = {}
            for name, value, optional in runs:
                _put(built, name, value(frame), optional, name)
            return Message(built, kind)

        return Step(run, 40 + sum(step.cost for _, step, _ in steps))

    def _comprehension(self, node: Comprehension) -> Step:
        return folding.plan_fold(self, node)


def _check_pattern(pattern: Any) -> None:
    try:
        compile_pattern(pattern)
    except PatternError as error:
        raise InstantiationError(str(error)) from None


def _are_static(nodes: list[Node]) -> bool:
    return not any(is_dyn(node.type) for node in nodes)


def _put(built: dict[Any, Any], key: Any, value: Any, optional: bool, shown: str) -> None:
    if optional:
        if value.__class__ is not Optional:
            fail(f"cannot initialize optional entry '{shown}' from non-optional value {show(value)}")
        if not value.present:
            return
        value = value.value
    built[key] = value


def _optional_list(runs: list[Run], optional: frozenset[int]) -> Run:
    def run(frame: Frame) -> Any:
        built: list[Any] = []
        for index, item in enumerate(runs):
            value = item(frame)
            if index not in optional:
                built.append(value)
            elif value.__class__ is not Optional:
                fail(f"cannot initialize optional list element from non-optional value {show(value)}")
            elif value.present:
                built.append(value.value)
        return built

    return run


def _constant_membership(element: Step, values: list[Any]) -> Step | None:
    """`x in [constants]` is a lookup in a set, and free."""
    if not values:
        return constant(False)
    if not all(value.__class__ in (str, int, float, bool) for value in values):
        return None
    members = {map_key(value) for value in values}
    run_element = element.run

    def run(frame: Frame) -> Any:
        value = run_element(frame)
        try:
            return map_key(value) in members
        except TypeError:
            return False

    return Step(run, element.cost)


def _fast_operator(node: Call, steps: list[Step]) -> Run | None:
    """Comparisons of values whose types are known to be the same need no look at them."""
    if len(steps) != 2 or node.target is not None:
        return None
    left_type, right_type = node.arguments[0].type, node.arguments[1].type
    if left_type.kind != right_type.kind:
        return None
    builder = _COMPARISONS.get(node.function)
    if builder is None:
        return None
    if left_type.kind not in (_PRIMITIVES if node.function in ("_==_", "_!=_") else _PLAIN_ORDER):
        return None
    return builder(steps[0].run, steps[1])


def _less(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) < value
    return lambda frame: left(frame) < other(frame)


def _less_equals(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) <= value
    return lambda frame: left(frame) <= other(frame)


def _greater(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) > value
    return lambda frame: left(frame) > other(frame)


def _greater_equals(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) >= value
    return lambda frame: left(frame) >= other(frame)


def _equal(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) == value
    return lambda frame: left(frame) == other(frame)


def _not_equal(left: Run, right: Step) -> Run:
    other, value = right.run, right.value
    if right.constant:
        return lambda frame: left(frame) != value
    return lambda frame: left(frame) != other(frame)


_COMPARISONS: dict[str, Callable[[Run, Step], Run]] = {
    "_<_": _less,
    "_<=_": _less_equals,
    "_>_": _greater,
    "_>=_": _greater_equals,
    "_==_": _equal,
    "_!=_": _not_equal,
}


def _call(implementation: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        only = runs[0]
        return lambda frame: implementation(only(frame))
    if len(runs) == 2:
        first, second = runs
        return lambda frame: implementation(first(frame), second(frame))
    return lambda frame: implementation(*[run(frame) for run in runs])


def _costed_call(implementation: Callable[..., Any], runs: list[Run], cost: Any, name: str) -> Run:
    if name in COSTED_BY_RESULT:

        def run_and_charge(frame: Frame) -> Any:
            arguments = tuple([item(frame) for item in runs])
            result = implementation(*arguments)
            frame[0].charge(cost(arguments, result))
            return result

        return run_and_charge
    joins_lists, flattens = name == "_+_", name == "flatten"
    if name in COUNTED_LISTS:
        runs = [_counted(run) for run in runs]

    def charge_and_run(frame: Frame) -> Any:
        arguments = tuple([item(frame) for item in runs])
        frame[0].charge(cost(arguments, None))
        if joins_lists and isinstance(arguments[0], list):
            frame[0].copy(len(arguments[0]) + len(arguments[1]) if isinstance(arguments[1], list) else 0)
        result = implementation(*arguments)
        if flattens:
            frame[0].copy(len(result))
        return result

    return charge_and_run


def _counted(run: Run) -> Run:
    def run_list(frame: Frame) -> Any:
        try:
            return run(frame)
        except CostLimitExceeded:
            raise
        except EvaluationError:
            fail("internal error: interface conversion: *types.Err is not traits.Lister: missing method Add")

    return run_list


def _dispatcher(name: str, overloads: list[Overload]) -> Callable[..., Any]:
    def dispatch(*arguments: Any) -> Any:
        for overload in overloads:
            if overload.accepts(arguments):
                assert overload.implementation is not None
                return overload.implementation(*arguments)
        return fail(f"no such overload: {name}({', '.join(map(type_name, arguments))})")

    return dispatch


_PLANNERS: dict[type, Callable[[Planner, Any], Step]] = {
    Literal: Planner._literal,
    Ident: Planner._ident,
    Select: Planner._select,
    Call: Planner._call,
    ListNode: Planner._list,
    MapNode: Planner._map,
    StructNode: Planner._struct,
    Comprehension: Planner._comprehension,
}
_SPECIAL: dict[str, Callable[[Planner, Call], Step]] = {
    "_&&_": logic.plan_and,
    "_||_": logic.plan_or,
    "_?_:_": logic.plan_conditional,
    "@not_strictly_false": logic.plan_not_strictly_false,
    "_?._": selecting.plan_optional_select,
    "_[?_]": selecting.plan_optional_index,
    "_[_]": selecting.plan_index,
    "or": selecting.plan_or_optional,
    "orValue": selecting.plan_or_value,
}
