"""Finds the type of every node of an expression, or says why there is none.

Overloads are tried in order of declaration; if several fit, the call is decided when it runs and its type is dynamic
unless they agree. What is wrong is collected, not raised, so that all errors of an expression are reported together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pilothouse.cel.declarations import Function, Overload, StructType
from pilothouse.cel.nodes import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from pilothouse.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    Substitution,
    Type,
    format_signature,
    is_dyn,
    list_of,
    map_of,
    most_general,
    optional_of,
    parameter,
    type_of,
    unwrap_optional,
)
from pilothouse.cel.values import type_of_value

if TYPE_CHECKING:
    from pilothouse.cel.environment import Environment


_MAX_ERRORS = 1000
"""More than is ever shown."""
_PLAIN = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
"""Types that are what they are, whatever is learnt about others."""


def check(root: Node, environment: Environment) -> tuple[list[tuple[int, str]], set[str]]:
    """Write types into the tree; return the errors found and the names of the variables used."""
    checker = _Checker(environment)
    checker.visit(root)
    if not checker.errs:
        for node in checker.visited.values():
            if node.type.kind not in _PLAIN:
                node.type = checker.known.apply(node.type, free_as_dyn=True)
    return checker.errs, checker.names


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.known = Substitution()
        self.scopes: list[dict[str, Type]] = []
        self.errs: list[tuple[int, str]] = []
        self.names: set[str] = set()
        self.visited: dict[int, Node] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.fresh = 0

    def error(self, offset: int, message: str) -> None:
        self.errs.append((offset, message))

    def visit(self, node: Node) -> None:
        if isinstance(node, Literal):
            node.type = type_of_value(node.value)
            return
        if id(node) in self.visited:  # macros may use one argument twice, and its errors are told as often
            if self.errs and len(self.errs) < _MAX_ERRORS:
                start, end = self.spans[id(node)]
                self.errs += self.errs[start:end]
            return
        start = len(self.errs)
        _VISITORS[node.__class__](self, node)
        self.visited[id(node)] = node
        self.spans[id(node)] = start, len(self.errs)

    def _assign(self, wanted: Type, given: Type) -> bool:
        return self.known.assign((wanted,), (given,))

    def _variable(self) -> Type:
        self.fresh += 1
        return parameter(f"_var{self.fresh - 1}")

    def _mismatch(self, offset: int, wanted: Type, given: Type) -> None:
        self.error(offset, f"expected type '{wanted}' but found '{given}'")

    def _undeclared(self, offset: int, name: str) -> None:
        self.error(offset, f"undeclared reference to '{name}' (in container '')")

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _ident(self, node: Ident) -> None:
        if not self._resolve(node, node.name, self._local(node.name)):
            node.type = ERROR
            self._undeclared(node.offset, node.name)

    def _resolve(self, node: Ident, name: str, local: Type | None) -> bool:
        if local is not None:
            node.type = local
            self.names.add(name)
            return True
        name = name.removeprefix(".")
        declared = self.environment.variables.get(name)
        if declared is not None:
            node.name, node.type = name, declared
            self.names.add(name)
            return True
        constant = self.environment.find_type(name)
        if constant is None:
            return False
        node.name, node.constant, node.type = name, constant, type_of(constant)
        return True

    def _select(self, node: Select) -> None:
        if not node.test and self._qualified(node):
            return
        kind = self._select_field(node, node.operand, node.field, False)
        node.type = BOOL if node.test else self.known.apply(kind)

    def _qualified(self, node: Select) -> bool:
        name = qualified_name(node)
        if name is None or self._local(name.split(".", 1)[0]) is not None:
            return False
        ident = Ident(node.offset, name)
        if not self._resolve(ident, name, None):
            return False
        node.ident, node.type = ident, ident.type
        return True

    def _select_field(self, node: Node, operand: Node, field: str, optional: bool) -> Type:
        self.visit(operand)
        target, was_optional = unwrap_optional(self.known.apply(operand.type))
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            result = self._field(node.offset, target, field) or ERROR
        elif target.kind == "param":
            self._assign(DYN, target)
            result = DYN
        else:
            if not is_dyn(target) and target.kind != "error":
                self.error(node.offset, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if was_optional or optional else result

    def _field(self, offset: int, kind: Type, field: str) -> Type | None:
        struct = self.environment.find_struct(kind.name)
        if struct is None:
            self.error(offset, f"unexpected failed resolution of '{kind.name}'")
            return None
        found = struct.field(field)
        if found is None:
            self.error(offset, f"undefined field '{field}'")
        return found

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            self._optional_select(node)
            return
        for argument in node.arguments:
            self.visit(argument)
        if node.target is None:
            self._global_call(node, node.function)
            return
        prefix = qualified_name(node.target)
        if prefix is not None:
            function = self.environment.functions.get(f"{prefix}.{node.function}".removeprefix("."))
            if function is not None:
                node.function, node.target = function.name, None
                self._resolve_overload(node, function)
                return
        self.visit(node.target)
        function = self.environment.functions.get(node.function)
        if function is None:
            node.type = ERROR
            self._undeclared(node.offset, node.function)
            return
        self._resolve_overload(node, function)

    def _global_call(self, node: Call, name: str) -> None:
        function = self.environment.functions.get(name.removeprefix("."))
        if function is None:
            node.type = ERROR
            self._undeclared(node.offset, name)
            return
        node.function = function.name
        self._resolve_overload(node, function)

    def _optional_select(self, node: Call) -> None:
        operand, field = node.arguments
        assert isinstance(field, Literal)
        field.type = STRING
        node.type = self.known.apply(self._select_field(node, operand, field.value, True))
        node.overloads = self.environment.functions[node.function].overloads

    def _resolve_overload(self, node: Call, function: Function) -> None:
        arguments = node.arguments if node.target is None else [node.target, *node.arguments]
        if function.name in ("_&&_", "_||_"):
            self._logical(node, function)
            return
        given = [argument.type for argument in arguments]
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != (node.target is not None):
                continue
            found = self._try(overload, given)
            if found is None:
                continue
            node.overloads.append(overload)
            if result is None:
                result = found
            elif not is_dyn(result) and found != result:
                result = DYN
        if result is None:
            shown = [self.known.apply(kind, free_as_dyn=True) for kind in given]
            signature = format_signature(shown, node.target is not None)
            self.error(node.offset, f"found no matching overload for '{function.name}' applied to '{signature}'")
            result = ERROR
        node.type = result

    def _try(self, overload: Overload, given: list[Type]) -> Type | None:
        parameters, result = overload.parameters, overload.result
        if overload.has_parameters:
            fresh: dict[str, Type] = {}
            parameters = tuple(self._instantiate(kind, fresh) for kind in parameters)
            result = self._instantiate(result, fresh)
        if not self.known.assign(given, parameters):
            return None
        return self.known.apply(result)

    def _instantiate(self, kind: Type, fresh: dict[str, Type]) -> Type:
        if kind.kind == "param":
            if kind.name not in fresh:
                fresh[kind.name] = self._variable()
            return fresh[kind.name]
        if not kind.parameters:
            return kind
        return Type(kind.kind, kind.name, tuple(self._instantiate(item, fresh) for item in kind.parameters))

    def _logical(self, node: Call, function: Function) -> None:
        """A row of terms counts as pairs, as evenly as they go: only a term that stands at the top makes it an error.

        Two terms are the top themselves, of three the last one is, of more none: pairs that are errors may be anything.
        """
        node.type, node.overloads = BOOL, function.overloads
        count = len(node.arguments)
        for position, argument in enumerate(node.arguments):
            if not self._assign(argument.type, BOOL):
                self._mismatch(argument.offset, BOOL, argument.type)
                if count == 2 or (count == 3 and position == 2):
                    node.type = ERROR

    def _list(self, node: ListNode) -> None:
        element: Type | None = None
        for index, item in enumerate(node.elements):
            self.visit(item)
            kind = self._optional_element(item, item.type) if index in node.optional else item.type
            element = self._join(element, kind)
        node.type = list_of(element or self._variable())

    def _optional_element(self, node: Node, kind: Type) -> Type:
        inner, was_optional = unwrap_optional(kind)
        if not was_optional and not is_dyn(inner):
            self._mismatch(node.offset, optional_of(inner), inner)
        return inner

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None or (previous is current and current.kind in _PLAIN):
            return current
        return most_general(previous, current) if self._assign(previous, current) else DYN

    def _map(self, node: MapNode) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            self.visit(entry.key)
            key = self._join(key, entry.key.type)
            self.visit(entry.value)
            kind = entry.value.type
            if entry.optional:
                kind = self._optional_element(entry.value, kind)
            value = self._join(value, kind)
        node.type = map_of(key or self._variable(), value or self._variable())

    def _struct(self, node: StructNode) -> None:
        name = node.name.removeprefix(".")
        struct = self.environment.find_struct(name)
        if struct is None:
            constant = self.environment.find_type(name)
            node.type = ERROR
            if constant is None:
                self._undeclared(node.offset, node.name)
                return
            self.error(node.offset, f"'{constant.name}' is not a message type")
        else:
            node.name, node.type = name, struct.type
        for entry in node.entries:
            self._struct_field(struct, name, entry.key, entry.value, entry.offset, entry.optional)

    def _struct_field(
        self, struct: StructType | None, owner: str, name: str, value: Node, offset: int, optional: bool
    ) -> None:
        self.visit(value)
        wanted = ERROR
        if struct is None:
            self.error(offset, f"unexpected failed resolution of '{owner}'")
        else:
            found = struct.field(name)
            if found is None:
                self.error(offset, f"undefined field '{name}'")
            else:
                wanted = found
        given = self._optional_element(value, value.type) if optional else value.type
        if not self._assign(wanted, given):
            self.error(offset, f"expected type of field '{name}' is '{wanted}' but provided type is '{given}'")

    def _comprehension(self, node: Comprehension) -> None:
        self.visit(node.range)
        self.visit(node.initial)
        accumulated = node.initial.type
        self.scopes.append({node.accumulator: accumulated})
        first, second = self._iterated(node)
        scope = {node.first: first}
        if node.second:
            scope[node.second] = second
        self.scopes.append(scope)
        self.visit(node.condition)
        self._require(node.condition, BOOL)
        self.visit(node.step)
        self._require(node.step, accumulated)
        self.scopes.pop()
        self.visit(node.result)
        self.scopes.pop()
        node.type = self.known.apply(node.result.type)

    def _iterated(self, node: Comprehension) -> tuple[Type, Type]:
        kind = self.known.apply(node.range.type)
        if kind.kind == "list":
            return (INT, kind.parameters[0]) if node.second else (kind.parameters[0], DYN)
        if kind.kind == "map":
            return kind.parameters[0], kind.parameters[1]
        if kind.kind in ("dyn", "error", "param"):
            self._assign(DYN, kind)
            return DYN, DYN
        message = f"expression of type '{kind}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self.error(node.range.offset, message)
        return ERROR, ERROR

    def _require(self, node: Node, kind: Type) -> None:
        if not self._assign(kind, node.type):
            self._mismatch(node.offset, kind, node.type)


def qualified_name(node: Node) -> str | None:
    """Return `a.b.c` if the node is nothing but names, else None."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.test:
            return None
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)])


_VISITORS: dict[type, Callable[[_Checker, Any], None]] = {
    Ident: _Checker._ident,
    Select: _Checker._select,
    Call: _Checker._call,
    ListNode: _Checker._list,
    MapNode: _Checker._map,
    StructNode: _Checker._struct,
    Comprehension: _Checker._comprehension,
}
