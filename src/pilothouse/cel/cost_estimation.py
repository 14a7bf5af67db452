"""Estimates what an expression may cost before anything runs, from the sizes that schemas allow.

Sizes and costs are ranges (least, most) of unsigned 64-bit integers that saturate. A node remembers the path by which
its value is reached from a variable, so that a schema can tell its size: field names, `@items`, `@keys`, `@values`.
The rules are kube-apiserver's, because they decide which expressions are accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pilothouse.cel.call_estimates import CallEstimate, Operand, Path, SizeOfPath, estimate_call
from pilothouse.cel.macros import ACCUMULATOR
from pilothouse.cel.nodes import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from pilothouse.cel.ranges import FIXED_ONE, NO_COST, UNKNOWN, Range, add, fixed, times, union
from pilothouse.cel.types import Type
from pilothouse.cel.values import Duration, Timestamp

Cost = Range


class _Entries(NamedTuple):
    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: _Entries | None


def estimate(root: Node, sizes: SizeOfPath) -> Cost:
    return _Estimator(sizes).cost(root)


class _Estimator:
    def __init__(self, sizes: SizeOfPath) -> None:
        self.sizes = sizes
        self.paths: dict[int, Path] = {}
        self.computed: dict[int, Range] = {}
        self.entries: dict[int, _Entries] = {}
        self.costs: dict[int, Range] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        found = self.costs.get(id(node))
        if found is None:
            found = self.costs[id(node)] = _COSTS[node.__class__](self, node)
        return found

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, path: Path, size: Range | None, entries: _Entries | None = None) -> None:
        self.locals.setdefault(name, []).append(_Local(path, size, entries))

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self.paths.get(id(node), ())

    def size(self, node: Node) -> Range | None:
        if id(node) in self.computed:
            return self.computed[id(node)]
        found = _literal_size(node)
        if found is not None:
            return found
        path = self._path(node)
        if path:
            found = self.sizes(path)
            if found is not None:
                self.computed[id(node)] = found
                return found
        if _is_scalar(node.type):
            return FIXED_ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.size
        return None

    def _entry_sizes(self, node: Node) -> _Entries | None:
        if id(node) in self.entries:
            return self.entries[id(node)]
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.entries
        return None

    def _literal(self, node: Literal) -> Range:
        return NO_COST

    def _ident(self, node: Ident) -> Range:
        local = self._local(node.name)
        self.paths[id(node)] = local.path if local is not None else (node.name,)
        return FIXED_ONE

    def _select(self, node: Select) -> Range:
        if node.ident is not None:
            self.paths[id(node)] = (node.ident.name,)
            return FIXED_ONE
        cost = self.cost(node.operand)
        if node.test:
            return cost
        self.paths[id(node)] = (*self._path(node.operand), node.field)
        if node.operand.type.kind in ("map", "struct", "param"):
            cost = add(cost, FIXED_ONE)
        return cost

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return Operand(path, node.type, node, self.size(node))

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            argument = node.arguments[0]
            cost = self.cost(argument)
            self._copy_sizes(node, argument)
            return add(FIXED_ONE, cost)
        costs = [self.cost(argument) for argument in node.arguments]
        operands = [self._operand(argument) for argument in node.arguments]
        if not node.overloads:
            return NO_COST
        total, target = NO_COST, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        worst: Range | None = None
        result: Range | None = None
        for overload in node.overloads:
            cost, size = self._overload_cost(node, overload.id, target, operands, costs)
            worst = cost if worst is None else union(worst, cost)
            if size is not None:
                result = size if result is None else union(result, size)
            if overload.id in ("index_list", "index_map"):
                entries = self._entry_sizes(node.arguments[0])
                result = entries.value if entries is not None else None
                step = "@items" if overload.id == "index_list" else "@values"
                self.paths[id(node)] = (*self._path(node.arguments[0]), step)
            if result is None:
                result = self.size(node)
        if result is not None:
            self.computed[id(node)] = result
        return add(total, worst or NO_COST)

    def _overload_cost(
        self, node: Call, overload: str, target: Operand | None, operands: list[Operand], costs: list[Range]
    ) -> CallEstimate:
        if overload in ("logical_and", "logical_or"):
            return CallEstimate((costs[0][0], add_all(costs)[1]))
        if overload == "conditional":
            return self._conditional(node, operands, costs)
        if overload in ("add_string", "add_bytes", "add_list"):
            left, right = (self._entry_sizes(argument) for argument in node.arguments)
            self._set_entries(node, _union_entries(left, right))
        cost, size = estimate_call(node.function, overload, target, operands, self.sizes)
        return CallEstimate(add(cost, add_all(costs)), size)

    def _conditional(self, node: Call, operands: list[Operand], costs: list[Range]) -> CallEstimate:
        size = union(operands[1].size or UNKNOWN, operands[2].size or UNKNOWN)
        yes, no = (self._entry_sizes(argument) for argument in node.arguments[1:])
        self._set_entries(node, _union_entries(yes, no))
        return CallEstimate(add(costs[0], union(costs[1], costs[2])), size)

    def _set_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self.entries[id(node)] = entries

    def _copy_sizes(self, node: Node, source: Node) -> None:
        size = self.size(source)
        if size is not None:
            self.computed[id(node)] = size
        self._set_entries(node, self._entry_sizes(source))

    def _list(self, node: ListNode) -> Range:
        cost = fixed(10)
        sizes: list[Range] = []
        for item in node.elements:
            cost = add(cost, self.cost(item))
            sizes.append(self.size(item) or UNKNOWN)
        self.entries[id(node)] = _Entries("list", FIXED_ONE, _union_all(sizes))
        return cost

    def _map(self, node: MapNode) -> Range:
        cost = fixed(30)
        keys: list[Range] = []
        values: list[Range] = []
        for entry in node.entries:
            cost = add(cost, add(self.cost(entry.key), self.cost(entry.value)))
            keys.append(self.size(entry.key) or UNKNOWN)
            values.append(self.size(entry.value) or UNKNOWN)
        self.entries[id(node)] = _Entries("map", _union_all(keys), _union_all(values))
        return cost

    def _struct(self, node: StructNode) -> Range:
        return add(fixed(40), add_all([self.cost(entry.value) for entry in node.entries]))

    def _comprehension(self, node: Comprehension) -> Range:
        if (
            isinstance(node.range, ListNode)
            and not node.range.elements
            and isinstance(node.condition, Literal)
            and node.condition.value is False
        ):
            return self._bind(node)
        cost = add(self.cost(node.range), self.cost(node.initial))
        self._push_accumulator(node)
        self._push_iterated(node)
        turn = add(self.cost(node.condition), self.cost(node.step))
        self.locals[node.first].pop()
        if node.second:
            self.locals[node.second].pop()
        cost = add(cost, self.cost(node.result))
        self.locals[node.accumulator].pop()
        count = self.size(node.range) or UNKNOWN
        if isinstance(node.initial, Literal):
            size = self.size(node.initial)
            if size is not None:
                self.computed[id(node)] = size
        elif isinstance(node.initial, ListNode | MapNode):
            self.computed[id(node)] = count
            self._set_entries(node, self._entry_sizes(node.step))
        return add(cost, times(count, turn))

    def _push_accumulator(self, node: Comprehension) -> None:
        initial = node.initial
        self._push(node.accumulator, self._path(initial), self.size(initial), self._entry_sizes(initial))

    def _push_iterated(self, node: Comprehension) -> None:
        entries, path = self._entry_sizes(node.range), self._path(node.range)
        is_list = (entries.kind if entries is not None else node.range.type.kind) == "list"
        key = entries.key if entries is not None else None
        value = entries.value if entries is not None else None
        if node.second:
            self._push(node.first, (*path, "@indices" if is_list else "@keys"), key)
            self._push(node.second, (*path, "@items" if is_list else "@values"), value)
        else:
            self._push(node.first, (*path, "@items" if is_list else "@keys"), value if is_list else key)

    def _bind(self, node: Comprehension) -> Range:
        cost = add(self.cost(node.range), self.cost(node.initial))
        self._push_accumulator(node)
        cost = add(cost, self.cost(node.result))
        self.locals[node.accumulator].pop()
        self._copy_sizes(node, node.result)
        return cost


def add_all(costs: list[Range]) -> Range:
    total = NO_COST
    for cost in costs:
        total = add(total, cost)
    return total


def _union_all(sizes: list[Range]) -> Range:
    if not sizes:
        return NO_COST
    return min(size[0] for size in sizes), max(size[1] for size in sizes)


def _union_entries(left: _Entries | None, right: _Entries | None) -> _Entries | None:
    if left is None or right is None:
        return None
    return _Entries(left.kind, union(left.key, right.key), union(left.value, right.value))


def _literal_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        value = node.value
        if isinstance(value, str | bytes):
            return fixed(len(value))
        if value is None or isinstance(value, bool | int | float | Duration | Timestamp):
            return FIXED_ONE
        return None
    if isinstance(node, ListNode):
        return fixed(len(node.elements))
    if isinstance(node, MapNode):
        return fixed(len(node.entries))
    return None


_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


def _is_scalar(kind: Type) -> bool:
    if kind.kind == "opaque" and kind.name == "optional_type":
        return _is_scalar(kind.parameters[0])
    return kind.kind in _SCALARS


_COSTS: dict[type, Callable[[_Estimator, Any], Range]] = {
    Literal: _Estimator._literal,
    Ident: _Estimator._ident,
    Select: _Estimator._select,
    Call: _Estimator._call,
    ListNode: _Estimator._list,
    MapNode: _Estimator._map,
    StructNode: _Estimator._struct,
    Comprehension: _Estimator._comprehension,
}
