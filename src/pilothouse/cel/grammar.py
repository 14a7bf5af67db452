"""The grammar as an automaton, the way kube-apiserver's parser generator builds it: which tokens may come next, and
which of several alternatives the coming tokens choose.

This is needed only to explain texts that do not follow the grammar in kube-apiserver's words; the parser does without
it. A decision is taken on as few tokens as possible, first without looking at where the rule was called from, then, if
alternatives stay in conflict, with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

EPSILON = "<EPSILON>"
EOF = "<EOF>"
Stack = tuple[Any, ...] | None
Element = tuple[Any, ...]


class State:
    """A state: its kind decides how errors there are handled."""

    __slots__ = ("kind", "number", "rule", "steps")

    def __init__(self, number: int, kind: str, rule: str) -> None:
        self.number = number
        self.kind = kind
        self.rule = rule
        self.steps: list[tuple[str, Any, State]] = []


class Config(NamedTuple):
    """A state reached for an alternative, with the states to return to.

    `outer` is set once it left the deciding rule, `kept` once it left an outermost call of a rule of operators.
    """

    state: State
    alternative: int
    stack: Stack
    outer: bool = False
    kept: bool = False


class Node:
    """An element of a rule bound to its states: what the interpreter of rules walks over."""

    __slots__ = ("back", "body", "enter", "kind", "parts", "value")

    def __init__(self, kind: str, enter: State, value: Any = None) -> None:
        self.kind = kind
        self.enter = enter
        self.value = value
        self.parts: list[Node] = []
        self.body: Node | None = None
        self.back: State | None = None


def _seq(*parts: Element) -> Element:
    return ("seq", parts)


def _rule(name: str, tightness: int = 0) -> Element:
    return ("rule", name, tightness)


def _tok(kind: str) -> Element:
    return ("tok", kind)


def _opt(part: Element) -> Element:
    return ("opt", part)


_RELATIONS: Final = frozenset({"==", "!=", "in", "<", "<=", ">=", ">"})
_COMMA: Final = _opt(_tok(","))
_DOTTED: Final = (_opt(_tok(".")), _tok("IDENTIFIER"))
_CALL: Final = (_tok("("), _opt(_rule("exprList")), _tok(")"))
_OPERATORS: Final = (
    _seq(("prec", 2), ("set", frozenset("*/%")), _rule("calc", 3)),
    _seq(("prec", 1), ("set", frozenset("-+")), _rule("calc", 2)),
)
_STEPS: Final = (
    _seq(("prec", 3), _tok("."), _opt(_tok("?")), _rule("escapeIdent")),
    _seq(("prec", 2), _tok("."), _tok("IDENTIFIER"), *_CALL),
    _seq(("prec", 1), _tok("["), _opt(_tok("?")), _rule("expr"), _tok("]")),
)
_FIELD: Final = (_rule("optField"), _tok(":"), _rule("expr"))
_ENTRY: Final = (_rule("optExpr"), _tok(":"), _rule("expr"))
_PATH: Final = (*_DOTTED, ("star", _seq(_tok("."), _tok("IDENTIFIER"))))
_PRIMARIES: Final = (
    _seq(*_DOTTED),
    _seq(*_DOTTED, *_CALL),
    _seq(_tok("("), _rule("expr"), _tok(")")),
    _seq(_tok("["), _opt(_rule("listInit")), _COMMA, _tok("]")),
    _seq(_tok("{"), _opt(_rule("mapInitializerList")), _COMMA, _tok("}")),
    _seq(*_PATH, _tok("{"), _opt(_rule("fieldInitializerList")), _COMMA, _tok("}")),
    _rule("literal"),
)
_UNARIES: Final = (
    _rule("member"),
    _seq(("plus", _tok("!"), False), _rule("member")),
    _seq(("plus", _tok("-"), True), _rule("member")),
)
_LITERALS: Final = (
    _seq(_opt(_tok("-")), _tok("NUM_INT")),
    _tok("NUM_UINT"),
    _seq(_opt(_tok("-")), _tok("NUM_FLOAT")),
    *map(_tok, ("STRING", "BYTES", "true", "false", "null")),
)
RULES: Final[Mapping[str, Element]] = {
    "start": _seq(_rule("expr"), _tok(EOF)),
    "expr": _seq(_rule("conditionalOr"), _opt(_seq(_tok("?"), _rule("conditionalOr"), _tok(":"), _rule("expr")))),
    "conditionalOr": _seq(_rule("conditionalAnd"), ("star", _seq(_tok("||"), _rule("conditionalAnd")))),
    "conditionalAnd": _seq(_rule("relation"), ("star", _seq(_tok("&&"), _rule("relation")))),
    "relation": _seq(_rule("calc"), ("loop", (_seq(("prec", 1), ("set", _RELATIONS), _rule("relation", 2)),))),
    "calc": _seq(_rule("unary"), ("loop", _OPERATORS)),
    "unary": ("choice", _UNARIES),
    "member": _seq(_rule("primary"), ("loop", _STEPS)),
    "primary": ("choice", _PRIMARIES),
    "exprList": _seq(_rule("expr"), ("star", _seq(_tok(","), _rule("expr")))),
    "listInit": _seq(_rule("optExpr"), ("loop", (_seq(_tok(","), _rule("optExpr")),))),
    "fieldInitializerList": _seq(*_FIELD, ("loop", (_seq(_tok(","), *_FIELD),))),
    "optField": _seq(_opt(_tok("?")), _rule("escapeIdent")),
    "mapInitializerList": _seq(*_ENTRY, ("loop", (_seq(_tok(","), *_ENTRY),))),
    "escapeIdent": ("switch", (_tok("IDENTIFIER"), _tok("ESC_IDENTIFIER"))),
    "optExpr": _seq(_opt(_tok("?")), _rule("expr")),
    "literal": ("choice", _LITERALS),
}


class Automaton:
    """All rules as states; `nodes` are the bodies of the rules."""

    def __init__(self) -> None:
        self._count = 0
        rules = RULES
        self.starts = {name: self._state("start", name) for name in rules}
        self.stops = {name: self._state("stop", name) for name in rules}
        self.follows: dict[str, list[tuple[State, int]]] = {name: [] for name in rules}
        self._next: dict[int, frozenset[str]] = {}
        self.nodes: dict[str, Node] = {}
        for name, element in rules.items():
            node, enter, leave = self._build(element, name)
            self._link(self.starts[name], enter)
            self._link(leave, self.stops[name])
            self.nodes[name] = node

    def _state(self, kind: str, rule: str) -> State:
        self._count += 1
        return State(self._count, kind, rule)

    def _link(self, source: State, target: State) -> None:
        source.steps.append(("eps", None, target))

    def _build(self, element: Element, rule: str) -> tuple[Node, State, State]:
        kind = element[0]
        builder = getattr(self, f"_build_{kind}")
        built: tuple[Node, State, State] = builder(element, rule)
        return built

    def _build_seq(self, element: Element, rule: str) -> tuple[Node, State, State]:
        parts = [self._build(part, rule) for part in element[1]]
        for (_, _, leave), (_, enter, _) in pairwise(parts):
            self._link(leave, enter)
        node = Node("seq", parts[0][1])
        node.parts = [part for part, _, _ in parts]
        return node, parts[0][1], parts[-1][2]

    def _single(self, element: Element, rule: str, step: str, value: Any) -> tuple[Node, State, State]:
        enter, leave = self._state("basic", rule), self._state("basic", rule)
        enter.steps.append((step, value, leave))
        return Node(element[0], enter, value), enter, leave

    def _build_tok(self, element: Element, rule: str) -> tuple[Node, State, State]:
        return self._single(element, rule, "tokens", frozenset({element[1]}))

    def _build_set(self, element: Element, rule: str) -> tuple[Node, State, State]:
        return self._single(element, rule, "tokens", element[1])

    def _build_prec(self, element: Element, rule: str) -> tuple[Node, State, State]:
        return self._single(element, rule, "prec", element[1])

    def _build_rule(self, element: Element, rule: str) -> tuple[Node, State, State]:
        built = self._single(element, rule, "rule", (element[1], element[2]))
        self.follows[element[1]].append((built[2], element[2]))
        return built

    def _block(self, kind: str, parts: list[tuple[Node, State, State]], rule: str) -> tuple[State, State]:
        enter, leave = self._state(kind, rule), self._state("basic", rule)
        for _, first, last in parts:
            self._link(enter, first)
            self._link(last, leave)
        return enter, leave

    def _build_opt(self, element: Element, rule: str) -> tuple[Node, State, State]:
        part = self._build(element[1], rule)
        enter, leave = self._block("block", [part], rule)
        self._link(enter, leave)
        node = Node("opt", enter)
        node.body = part[0]
        return node, enter, leave

    def _build_choice(self, element: Element, rule: str) -> tuple[Node, State, State]:
        parts = [self._build(part, rule) for part in element[1]]
        enter, leave = self._block("block", parts, rule)
        node = Node(element[0], enter)
        node.parts = [part for part, _, _ in parts]
        return node, enter, leave

    _build_switch = _build_choice

    def _build_loop(self, element: Element, rule: str) -> tuple[Node, State, State]:
        return self._repeat("loop", [self._build(part, rule) for part in element[1]], rule)

    def _build_star(self, element: Element, rule: str) -> tuple[Node, State, State]:
        return self._repeat("star", [self._build(element[1], rule)], rule)

    def _repeat(self, kind: str, parts: list[tuple[Node, State, State]], rule: str) -> tuple[Node, State, State]:
        entry, back = self._state("loop entry", rule), self._state("loop back", rule)
        leave = self._state("basic", rule)
        first, last = self._block("block", parts, rule)
        self._link(entry, first)
        self._link(entry, leave)
        self._link(last, back)
        self._link(back, entry)
        node = Node(kind, entry)
        node.back = back
        node.parts = [part for part, _, _ in parts]
        choice = Node("choice", first)
        choice.parts = node.parts
        node.body = choice if len(parts) > 1 else parts[0][0]
        return node, entry, leave

    def _build_plus(self, element: Element, rule: str) -> tuple[Node, State, State]:
        part = self._build(element[1], rule)
        first, last = self._block("block", [part], rule)
        back, leave = self._state("loop back", rule), self._state("basic", rule)
        self._link(last, back)
        self._link(back, first)
        self._link(back, leave)
        node = Node("plus", first, element[2])
        node.body, node.back = part[0], back
        return node, first, leave

    def next_tokens(self, state: State) -> frozenset[str]:
        """The tokens that may come next in a state; EPSILON if the rule may end before any."""
        found = self._next.get(state.number)
        if found is None:
            found = self._next[state.number] = frozenset(self._collect(state, set(), ()))
        return found

    def _collect(self, state: State, seen: set[tuple[int, Any]], stack: tuple[State, ...]) -> Iterator[str]:
        key = (state.number, stack)
        if key in seen:
            return
        seen.add(key)
        if state.kind == "stop":
            if not stack:
                yield EPSILON
            else:
                yield from self._collect(stack[0], seen, stack[1:])
            return
        for kind, value, target in state.steps:
            if kind == "tokens":
                yield from value
            elif kind == "rule":
                yield from self._collect(self.starts[value[0]], seen, (target, *stack))
            else:
                yield from self._collect(target, seen, stack)


class _Closure:
    """Collects what is reachable without consuming a token."""

    def __init__(
        self, automaton: Automaton, full: bool, at_eof: bool, tightness: int | None, deciding: str = ""
    ) -> None:
        self.automaton = automaton
        self.deciding = deciding
        self.full = full
        self.at_eof = at_eof
        self.tightness = tightness
        self.found: dict[tuple[int, int, Stack], Config] = {}
        self.steps = 0

    def add(self, config: Config, depth: int) -> None:
        waiting = [(config, depth)]
        while waiting:
            config, depth = waiting.pop()
            key = (config.state.number, config.alternative, config.stack)
            known = self.found.get(key)
            if known is not None:
                outer, kept = known.outer or config.outer, known.kept or config.kept
                if (outer, kept) == (known.outer, known.kept):
                    continue
                config = config._replace(outer=outer, kept=kept)
            self.found[key] = config
            self.steps += 1
            if self.steps > 20_000:
                raise UndecidedError
            waiting.extend(self._follow(config, depth))

    def _follow(self, config: Config, depth: int) -> list[tuple[Config, int]]:
        if config.state.kind == "stop":
            return self._leave(config, depth)
        found: list[tuple[Config, int]] = []
        for kind, value, target in config.state.steps:
            if kind == "eps" or (kind == "tokens" and self.at_eof and EOF in value):
                found.append((config._replace(state=target), depth))
            elif kind == "prec":
                if self.tightness is None or depth != 0 or value >= self.tightness:
                    found.append((config._replace(state=target), depth))
            elif kind == "rule":
                entered = self.automaton.starts[value[0]]
                found.append((config._replace(state=entered, stack=(target, config.stack)), depth + 1))
        return found

    def _leave(self, config: Config, depth: int) -> list[tuple[Config, int]]:
        if config.stack is not None:
            return [(config._replace(state=config.stack[0], stack=config.stack[1]), depth - 1)]
        if self.full:
            return []
        rule = config.state.rule
        outermost = self.deciding == rule
        return [
            (config._replace(state=target, outer=True, kept=config.kept or (outermost and tightness == 0)), depth - 1)
            for target, tightness in self.automaton.follows[rule]
        ]


class UndecidedError(Exception):
    """Predicting took too many steps."""


class NoViableError(Exception):
    """No alternative fits the tokens up to `offending`."""

    def __init__(self, offending: int) -> None:
        super().__init__()
        self.offending = offending


def predict(
    automaton: Automaton, decision: State, kinds: list[str], at: int, outer: Stack, tightness: int | None
) -> int:
    """Return the number of the alternative that the tokens choose, or raise NoViableError."""
    chosen = _simulate(automaton, decision, kinds, at, None, tightness, full=False)
    if chosen is None:
        chosen = _simulate(automaton, decision, kinds, at, outer, tightness, full=True)
    assert chosen is not None
    return chosen


def _simulate(
    automaton: Automaton, decision: State, kinds: list[str], at: int, outer: Stack, tightness: int | None, *, full: bool
) -> int | None:
    by_precedence = tightness is not None and not full
    closure = _Closure(automaton, full, False, tightness, decision.rule if by_precedence else "")
    for number, (_, _, target) in enumerate(decision.steps, 1):
        closure.add(Config(target, number, outer), 0)
    configs = list(closure.found.values())
    if by_precedence:
        configs = _without_repeats(configs)
    position = at
    while True:
        kind = kinds[position]
        reached = _reach(automaton, configs, kind, full)
        if not reached:
            finished = [
                config.alternative
                for config in configs
                if config.outer or (config.state.kind == "stop" and config.stack is None)
            ]
            if finished:
                return min(finished)
            raise NoViableError(position)
        alternatives = {config.alternative for config in reached}
        if len(alternatives) == 1:
            return alternatives.pop()
        subsets = _subsets(reached)
        if full:
            least = {min(subset) for subset in subsets}
            if len(least) == 1:
                return least.pop()
        elif _conflicts(reached, subsets):
            return None
        if kind == EOF:
            return min(alternatives)
        configs = reached
        position += 1


def _without_repeats(configs: list[Config]) -> list[Config]:
    """Operators bind in the loop that meets them first: leaving it for the same operator further out is no choice."""
    first = {(config.state.number, config.stack) for config in configs if config.alternative == 1}
    return [
        config
        for config in configs
        if config.alternative == 1 or config.kept or (config.state.number, config.stack) not in first
    ]


def _reach(automaton: Automaton, configs: list[Config], kind: str, full: bool) -> list[Config]:
    stopped: list[Config] = []
    moved: list[Config] = []
    for config in configs:
        if config.state.kind == "stop":
            if full or kind == EOF:
                stopped.append(config)
            continue
        for step, value, target in config.state.steps:
            if step == "tokens" and kind in value:
                moved.append(config._replace(state=target))
    if not stopped and kind != EOF and len({config.alternative for config in moved}) == 1:
        return moved
    closure = _Closure(automaton, full, kind == EOF, None)
    for config in moved:
        closure.add(config, 0)
    reached = list(closure.found.values())
    if kind == EOF:
        reached = [config for config in reached if config.state.kind == "stop"]
    if stopped and (not full or not any(config.state.kind == "stop" for config in reached)):
        reached += stopped
    return reached


def _subsets(configs: list[Config]) -> list[set[int]]:
    groups: dict[tuple[int, Stack], set[int]] = {}
    for config in configs:
        groups.setdefault((config.state.number, config.stack), set()).add(config.alternative)
    return list(groups.values())


def _conflicts(configs: list[Config], subsets: list[set[int]]) -> bool:
    if all(config.state.kind == "stop" for config in configs):
        return True
    if not any(len(subset) > 1 for subset in subsets):
        return False
    by_state: dict[int, set[int]] = {}
    for config in configs:
        by_state.setdefault(config.state.number, set()).add(config.alternative)
    return all(len(alternatives) > 1 for alternatives in by_state.values())


@cache
def automaton() -> Automaton:
    return Automaton()
