"""Explains a text that does not follow the grammar in kube-apiserver's words, and goes on reading to find more errors.

The rules are read once more the way kube-apiserver's generated parser reads them. At an error it tries to drop one
token or to invent one; else it reports, skips to a token that may follow one of the rules it is in, and goes on after
that rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.cel.grammar import (
    EOF,
    EPSILON,
    Automaton,
    Node,
    NoViableError,
    Stack,
    State,
    UndecidedError,
    automaton,
    predict,
)
from pilothouse.cel.issues import Issue, Source
from pilothouse.cel.lexer import Tokens

MAX_REPORTS = 100
MAX_RECOVERIES = 30
MAX_SKIPPED = 256
MAX_DEPTH = 250
# Sets of expected tokens are printed in this order.
_ORDER = (
    EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "true", "false", "null", "WHITESPACE", "COMMENT", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING",
    "BYTES", "IDENTIFIER", "ESC_IDENTIFIER",
)  # fmt: skip
_RANK = {kind: rank for rank, kind in enumerate(_ORDER)}
_NAMED = frozenset(kind for kind in _ORDER if kind.isupper()) | {EOF}
_RECURSIVE = frozenset({"relation", "calc", "member"})
_RESERVED = ("true", "false", "null")


class _ParseError(Exception):
    """A rule cannot go on."""

    def __init__(self, message: str, token: int) -> None:
        super().__init__(message)
        self.token = token


class _GiveUp(Exception):
    """Reading ends here; a message if that is to be told."""


def explain(source: Source, tokens: Tokens) -> list[Issue]:
    """Return every error of a text that the parser refused."""
    issues = [source.issue(offset, f"Syntax error: {text}") for offset, _, text in tokens.errs[:MAX_REPORTS]]
    reader = _Reader(source, tokens, issues)
    try:
        reader.read_rule("start", 0, None)
    except _GiveUp as end:
        if str(end):
            issues.append(Issue(-1, -1, str(end)))
    except UndecidedError:
        reader.report("no viable alternative at input", reader.at)
    return issues


class _Reader:
    def __init__(self, source: Source, tokens: Tokens, issues: list[Issue]) -> None:
        self.source = source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.offsets = tokens.offsets
        self.issues = issues
        self.skipped = tokens.errs
        self.automaton: Automaton = automaton()
        self.at = 0
        self.state: State = self.automaton.starts["start"]
        self.stack: Stack = None
        self.tightness: list[int] = [0]
        self.recovering = False
        self.recoveries = 0
        self.depths: dict[str, int] = {}
        self.last_error = -1
        self.error_states: set[int] = set()

    def report(self, message: str, token: int) -> None:
        if self.recovering:
            return
        self.recovering = True
        self._notify(message, token)

    def _notify(self, message: str, token: int) -> None:
        if len(self.issues) >= MAX_REPORTS:
            message = f"More than {MAX_REPORTS} syntax errors"
            self.issues.append(self.source.issue(self.offsets[token], f"Syntax error: {message}"))
            raise _GiveUp("")
        self.issues.append(self.source.issue(self.offsets[token], f"Syntax error: {message}"))

    def _consume(self) -> None:
        if self.kinds[self.at] != EOF:
            self.at += 1

    def read_rule(self, name: str, tightness: int, invoked: State | None) -> None:
        """Read one rule; an error in it is reported and skipped, and the caller goes on after it."""
        self._enter(name)
        outer, pushed = self.stack, 1
        if invoked is not None:
            self.stack = (invoked, outer)
        self.tightness.append(tightness)
        turns = [0]
        try:
            self._read(self.automaton.nodes[name], turns)
        except _ParseError as error:
            self.report(str(error), error.token)
            self._recover()
        pushed += turns[0]
        self.depths[name] -= pushed
        self.tightness.pop()
        self.stack = outer
        if invoked is not None:
            self.state = invoked

    def _enter(self, name: str) -> None:
        depth = self.depths.get(name, 0) + 1
        if depth > MAX_DEPTH:
            raise _GiveUp(f"expression recursion limit exceeded: {MAX_DEPTH}")
        self.depths[name] = depth

    def _read(self, node: Node, turns: list[int]) -> None:
        kind = node.kind
        self.state = node.enter
        if kind == "seq":
            for part in node.parts:
                self._read(part, turns)
        elif kind in ("tok", "set"):
            self._match(node)
        elif kind == "rule":
            self.read_rule(node.value[0], node.value[1], node.enter)
        elif kind == "opt":
            self._sync()
            assert node.body is not None
            if self._begins(node.body):
                self._read(node.body, turns)
        elif kind == "choice":
            self._sync()
            self._read(node.parts[self._predict(node.enter) - 1], turns)
        elif kind == "switch":
            self._sync()
            self._read(self._switch(node), turns)
        elif kind in ("star", "loop"):
            self._repeat(node, turns)
        elif kind == "plus":
            self._repeat_once(node, turns)

    def _begins(self, node: Node) -> bool:
        return self.kinds[self.at] in self.automaton.next_tokens(node.enter)

    def _switch(self, node: Node) -> Node:
        for part in node.parts:
            if self._begins(part):
                return part
        raise _ParseError(self._no_viable(self.at, self.at), self.at)

    def _repeat(self, node: Node, turns: list[int]) -> None:
        assert node.body is not None and node.back is not None
        self._sync()
        while self._goes_on(node):
            if node.enter.rule in _RECURSIVE:
                self._enter(node.enter.rule)
                turns[0] += 1
            self._read(node.body, turns)
            self.state = node.back
            self._sync()

    def _goes_on(self, node: Node) -> bool:
        assert node.body is not None
        if node.kind == "star":
            return self._begins(node.body)
        return self._predict(node.enter) == 1

    def _repeat_once(self, node: Node, turns: list[int]) -> None:
        assert node.body is not None and node.back is not None
        self._sync()
        while True:
            self._read(node.body, turns)
            self.state = node.back
            self._sync()
            again = self._predict(node.back) == 1 if node.value else self._begins(node.body)
            if not again:
                return

    def _predict(self, decision: State) -> int:
        tightness = self.tightness[-1] if decision.kind == "loop entry" and decision.rule in _RECURSIVE else None
        try:
            return predict(self.automaton, decision, self.kinds, self.at, self._follows(), tightness)
        except NoViableError as error:
            raise _ParseError(self._no_viable(self.at, error.offending), error.offending) from None

    def _follows(self) -> Stack:
        """The states to go on in after the rules being read, innermost first."""
        chain: list[State] = []
        stack = self.stack
        while stack is not None:
            chain.append(stack[0].steps[0][2])
            stack = stack[1]
        built: Stack = None
        for state in reversed(chain):
            built = (state, built)
        return built

    def _no_viable(self, start: int, offending: int) -> str:
        if self.kinds[start] == EOF:
            text = EOF
        else:
            end = self.offsets[offending] + (len(self.texts[offending]) if self.kinds[offending] != EOF else 0)
            text = self._text(self.offsets[start], end)
        message = f"no viable alternative at input {_quote(text)}"
        for word in _RESERVED:
            if message.endswith(f" '.{word}'"):
                return f"mismatched input '{word}' expecting IDENTIFIER"
        return message

    def _text(self, start: int, end: int) -> str:
        """The text from one offset to another without what is no token."""
        pieces: list[str] = []
        for wrong, stop, _ in self.skipped:
            if start <= wrong < end:
                pieces.append(self.source.text[start:wrong])
                start = stop
        return "".join(pieces) + self.source.text[start:end]

    def _match(self, node: Node) -> None:
        if self.kinds[self.at] in node.value:
            self.recovering = False
            self._consume()
            return
        self._count_recovery()
        if self._delete_one():
            self._consume()
            return
        if self._insert_one(node):
            return
        raise self._mismatch()

    def _mismatch(self) -> _ParseError:
        expected = _show(self._expected())
        return _ParseError(f"mismatched input {self._shown(self.at)} expecting {expected}", self.at)

    def _shown(self, token: int) -> str:
        return _quote(self.texts[token])

    def _count_recovery(self) -> None:
        if self.recoveries == MAX_RECOVERIES:
            self._notify(f"error recovery attempt limit exceeded: {MAX_RECOVERIES}", self.at)
            raise _GiveUp("")
        self.recoveries += 1

    def _delete_one(self) -> bool:
        following = self.kinds[min(self.at + 1, len(self.kinds) - 1)]
        if following not in self._expected():
            return False
        self.report(f"extraneous input {self._shown(self.at)} expecting {_show(self._expected())}", self.at)
        self._consume()
        self.recovering = False
        return True

    def _insert_one(self, node: Node) -> bool:
        after = node.enter.steps[0][2]
        if self.kinds[self.at] not in self._expected_in(after):
            return False
        self.report(f"missing {_show(self._expected())} at {self._shown(self.at)}", self.at)
        return True

    def _expected(self) -> frozenset[str]:
        return self._expected_in(self.state)

    def _expected_in(self, state: State) -> frozenset[str]:
        found = self.automaton.next_tokens(state)
        if EPSILON not in found:
            return found
        expected = set(found)
        stack = self.stack
        while stack is not None and EPSILON in expected:
            expected.discard(EPSILON)
            expected |= self.automaton.next_tokens(stack[0].steps[0][2])
            stack = stack[1]
        if EPSILON in expected:
            expected.discard(EPSILON)
            expected.add(EOF)
        return frozenset(expected)

    def _sync(self) -> None:
        if self.recovering:
            return
        following = self.automaton.next_tokens(self.state)
        if EPSILON in following or self.kinds[self.at] in following:
            return
        if self.state.kind in ("block", "loop entry"):
            if not self._delete_one():
                raise self._mismatch()
        elif self.state.kind == "loop back":
            self.report(f"extraneous input {self._shown(self.at)} expecting {_show(self._expected())}", self.at)
            self._skip(self._expected() | self._recovery_set())

    def _recovery_set(self) -> frozenset[str]:
        found: set[str] = set()
        stack = self.stack
        while stack is not None:
            found |= self.automaton.next_tokens(stack[0].steps[0][2])
            stack = stack[1]
        return frozenset(found - {EPSILON})

    def _recover(self) -> None:
        self._count_recovery()
        skipped = 0
        if self.last_error == self.at and self.state.number in self.error_states:
            self._consume()
            skipped = 1
        self.last_error = self.at
        self.error_states.add(self.state.number)
        self._skip(self._recovery_set(), skipped)

    def _skip(self, wanted: Iterable[str], skipped: int = 0) -> None:
        allowed = frozenset(wanted)
        while self.kinds[self.at] != EOF and self.kinds[self.at] not in allowed:
            if skipped >= MAX_SKIPPED:
                raise _GiveUp(f"error recovery token lookahead limit exceeded: {MAX_SKIPPED}")
            skipped += 1
            self._consume()


def _quote(text: str) -> str:
    escaped = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def _show(kinds: Iterable[str]) -> str:
    names = [kind if kind in _NAMED else f"'{kind}'" for kind in sorted(kinds, key=lambda kind: _RANK[kind])]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
