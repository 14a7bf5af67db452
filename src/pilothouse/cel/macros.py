"""Macros: calls that the parser turns into folds and presence tests before types are checked.

A macro is found by name, number of arguments and whether it has a receiver. An expander returns the new node, or raises
`MacroError` when the arguments make no sense for it.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.cel.nodes import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select

ACCUMULATOR = "@result"
Expander = Callable[[int, Node | None, list[Node]], Node | None]
Macros = dict[tuple[str, int, bool], Expander]


class MacroError(Exception):
    """The arguments do not fit the macro."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def call(at: int, function: str, *arguments: Node) -> Call:
    return Call(at, function, list(arguments))


def accumulator(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


def _variable(node: Node, complaint: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, complaint)
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return node.name


def _has(at: int, target: Node | None, arguments: list[Node]) -> Node:
    argument = arguments[0]
    if not isinstance(argument, Select) or argument.test:
        raise MacroError(argument.offset, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.field, True)


def _quantifier_parts(kind: str, at: int, predicate: Node) -> tuple[Node, Node, Node, Node]:
    if kind == "all":
        return (
            Literal(at, True),
            call(at, "@not_strictly_false", accumulator(at)),
            call(at, "_&&_", accumulator(at), predicate),
            accumulator(at),
        )
    if kind == "exists":
        return (
            Literal(at, False),
            call(at, "@not_strictly_false", call(at, "!_", accumulator(at))),
            call(at, "_||_", accumulator(at), predicate),
            accumulator(at),
        )
    return (
        Literal(at, 0),
        Literal(at, True),
        call(at, "_?_:_", predicate, call(at, "_+_", accumulator(at), Literal(at, 1)), accumulator(at)),
        call(at, "_==_", accumulator(at), Literal(at, 1)),
    )


def _quantifier(kind: str) -> Expander:
    def expand(at: int, target: Node | None, arguments: list[Node]) -> Node:
        name = _variable(arguments[0], "argument must be a simple name")
        assert target is not None
        return Comprehension(at, target, name, "", ACCUMULATOR, *_quantifier_parts(kind, at, arguments[1]))

    return expand


def _fold_list(at: int, target: Node | None, names: tuple[str, str], item: Node, condition: Node | None) -> Node:
    step: Node = call(at, "_+_", accumulator(at), ListNode(at, [item]))
    if condition is not None:
        step = call(at, "_?_:_", condition, step, accumulator(at))
    assert target is not None
    return Comprehension(at, target, *names, ACCUMULATOR, ListNode(at, []), Literal(at, True), step, accumulator(at))


def _map(at: int, target: Node | None, arguments: list[Node]) -> Node:
    name = _variable(arguments[0], "argument is not an identifier")
    condition = arguments[1] if len(arguments) == 3 else None
    return _fold_list(at, target, (name, ""), arguments[-1], condition)


def _filter(at: int, target: Node | None, arguments: list[Node]) -> Node:
    name = _variable(arguments[0], "argument is not an identifier")
    return _fold_list(at, target, (name, ""), arguments[0], arguments[1])


STANDARD: Macros = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("exists_one"),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}


def _two_variables(arguments: list[Node]) -> tuple[str, str]:
    nodes = arguments[:2]
    names: list[str] = []
    for node in nodes:
        if not isinstance(node, Ident):
            raise MacroError(node.offset, "argument must be a simple name")
        names.append(node.name)
    if names[0] == names[1]:
        raise MacroError(nodes[1].offset, f"duplicate variable name: {names[0]}")
    for node, name in zip(nodes, names, strict=True):
        if name in (ACCUMULATOR, "__result__"):
            raise MacroError(node.offset, "iteration variable overwrites accumulator variable")
    return names[0], names[1]


def _quantifier_of_two(kind: str) -> Expander:
    def expand(at: int, target: Node | None, arguments: list[Node]) -> Node:
        names = _two_variables(arguments)
        assert target is not None
        return Comprehension(at, target, *names, ACCUMULATOR, *_quantifier_parts(kind, at, arguments[2]))

    return expand


def _transform_list(at: int, target: Node | None, arguments: list[Node]) -> Node:
    names = _two_variables(arguments)
    return _fold_list(at, target, names, arguments[-1], arguments[2] if len(arguments) == 4 else None)


def _fold_map(at: int, target: Node | None, arguments: list[Node], by_entry: bool) -> Node:
    names = _two_variables(arguments)
    inserted = [arguments[-1]] if by_entry else [Ident(at, names[0]), arguments[-1]]
    step: Node = call(at, "cel.@mapInsert", accumulator(at), *inserted)
    if len(arguments) == 4:
        step = call(at, "_?_:_", arguments[2], step, accumulator(at))
    assert target is not None
    return Comprehension(at, target, *names, ACCUMULATOR, MapNode(at, []), Literal(at, True), step, accumulator(at))


def _transform_map(at: int, target: Node | None, arguments: list[Node]) -> Node:
    return _fold_map(at, target, arguments, False)


def _transform_map_entry(at: int, target: Node | None, arguments: list[Node]) -> Node:
    return _fold_map(at, target, arguments, True)


TWO_VARIABLES: Macros = {
    ("all", 3, True): _quantifier_of_two("all"),
    ("exists", 3, True): _quantifier_of_two("exists"),
    ("existsOne", 3, True): _quantifier_of_two("exists_one"),
    ("exists_one", 3, True): _quantifier_of_two("exists_one"),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}


def _optional_map(flat: bool) -> Expander:
    def expand(at: int, target: Node | None, arguments: list[Node]) -> Node:
        node = arguments[0]
        if not isinstance(node, Ident):
            macro = "optFlatMap" if flat else "optMap"
            raise MacroError(node.offset, f"{macro}() variable name must be a simple identifier")
        assert target is not None
        value: Node = _bind(at, node.name, Call(at, "value", [], target), arguments[1])
        if not flat:
            value = call(at, "optional.of", value)
        return call(at, "_?_:_", Call(at, "hasValue", [], target), value, call(at, "optional.none"))

    return expand


def _bind(at: int, name: str, value: Node, result: Node) -> Node:
    return Comprehension(at, ListNode(at, []), "#unused", "", name, value, Literal(at, False), Ident(at, name), result)


def _bind_macro(at: int, target: Node | None, arguments: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    node = arguments[0]
    if not isinstance(node, Ident):
        raise MacroError(node.offset, "cel.bind() variable names must be simple identifiers")
    return _bind(at, node.name, arguments[1], arguments[2])


OPTIONAL: Macros = {("optMap", 2, True): _optional_map(False), ("optFlatMap", 2, True): _optional_map(True)}
BINDINGS: Macros = {("bind", 3, True): _bind_macro}


def _sort_by(at: int, target: Node | None, arguments: list[Node]) -> Node | None:
    assert target is not None
    if not isinstance(target, ListNode | Call | Comprehension | Ident | Select):
        raise MacroError(
            target.offset, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    name = _variable(arguments[0], "argument is not an identifier")
    variable = "@__sortBy_input__"
    keys = _map(at, Ident(at, variable), [Ident(at, name), arguments[1]])
    sort = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, variable))
    return _bind(at, variable, target, sort)


SORT_BY: Macros = {("sortBy", 2, True): _sort_by}
