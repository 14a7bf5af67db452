"""Turns the text of an expression into a syntax tree, expanding macros on the way.

The grammar is read by descent with one token of lookahead. A text that does not follow the grammar is not explained
here: `syntax_errors.explain` reads it again the slow way and finds kube-apiserver's words. Nesting is limited per
grammar rule as in kube-apiserver, so a hostile text costs a bounded stack.
"""

from __future__ import annotations

import math

from pilothouse.cel.issues import CompileError, Issue, Source
from pilothouse.cel.lexer import Tokens, tokenize
from pilothouse.cel.macros import MacroError, Macros
from pilothouse.cel.nodes import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from pilothouse.cel.stack import room_for
from pilothouse.cel.string_literals import unquote, unquote_bytes
from pilothouse.cel.syntax_errors import explain
from pilothouse.cel.values import UInt

MAX_CODE_POINTS = 100_000
MAX_DEPTH = 250
RESERVED = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    }
)  # fmt: skip
_RELATIONS = {
    "<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in",
}  # fmt: skip
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}


class _NotInGrammar(Exception):
    """The tokens do not follow the grammar."""


class _TooDeep(Exception):
    """The nesting of a grammar rule exceeds the limit."""


def parse(source: Source, macros: Macros) -> Node:
    """Return the tree of an expression, or raise CompileError."""
    if len(source.text) > MAX_CODE_POINTS:
        size = len(source.text)
        message = f"expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
        raise CompileError(source, [Issue(-1, -1, message)])
    with room_for(source.text):
        return _parse(source, macros)


def _parse(source: Source, macros: Macros) -> Node:
    tokens = tokenize(source.text)
    parser = _Parser(tokens, macros)
    try:
        node = parser.parse()
    except _NotInGrammar:
        raise CompileError(source, explain(source, tokens)) from None
    except _TooDeep:
        message = f"expression recursion limit exceeded: {MAX_DEPTH}"
        raise CompileError(source, [Issue(-1, -1, message)]) from None
    errs = [source.issue(offset, f"Syntax error: {text}") for offset, _, text in tokens.errs]
    errs += [source.issue(offset, text) for offset, text in parser.errs]
    if errs:
        raise CompileError(source, errs)
    return node


class _Parser:
    def __init__(self, tokens: Tokens, macros: Macros) -> None:
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.offsets = tokens.offsets
        self.macros = macros
        self.at = 0
        self.depths = {"expr": 0, "relation": 0, "calc": 0, "member": 0}
        self.errs: list[tuple[int, str]] = []

    def parse(self) -> Node:
        node = self._expression()
        if self.kinds[self.at] != "<EOF>":
            raise _NotInGrammar
        return node

    def _enter(self, rule: str) -> None:
        depth = self.depths[rule] + 1
        if depth > MAX_DEPTH:
            raise _TooDeep
        self.depths[rule] = depth

    def _expect(self, kind: str) -> int:
        if self.kinds[self.at] != kind:
            raise _NotInGrammar
        self.at += 1
        return self.offsets[self.at - 1]

    def _expression(self) -> Node:
        self._enter("expr")
        node = self._either()
        if self.kinds[self.at] == "?":
            offset = self.offsets[self.at]
            self.at += 1
            positive = self._either()
            self._expect(":")
            node = Call(offset, "_?_:_", [node, positive, self._expression()])
        self.depths["expr"] -= 1
        return node

    def _either(self) -> Node:
        node = self._both()
        if self.kinds[self.at] != "||":
            return node
        offset, terms = self.offsets[self.at], [node]
        while self.kinds[self.at] == "||":
            self.at += 1
            terms.append(self._both())
        return Call(offset, "_||_", terms)

    def _both(self) -> Node:
        node = self._relation()
        if self.kinds[self.at] != "&&":
            return node
        offset, terms = self.offsets[self.at], [node]
        while self.kinds[self.at] == "&&":
            self.at += 1
            terms.append(self._relation())
        return Call(offset, "_&&_", terms)

    def _relation(self) -> Node:
        self._enter("relation")
        entered = 1
        node = self._sum(1)
        while (function := _RELATIONS.get(self.kinds[self.at])) is not None:
            self._enter("relation")
            entered += 1
            offset = self.offsets[self.at]
            self.at += 1
            self._enter("relation")
            right = self._sum(1)
            self.depths["relation"] -= 1
            node = Call(offset, function, [node, right])
        self.depths["relation"] -= entered
        return node

    def _sum(self, tightness: int) -> Node:
        self._enter("calc")
        entered = 1
        node = self._unary()
        while True:
            kind = self.kinds[self.at]
            function = _PRODUCTS.get(kind)
            if function is not None:
                right_tightness = 3
            elif tightness <= 1 and kind in _SUMS:
                function, right_tightness = _SUMS[kind], 2
            else:
                break
            if tightness > 2 and right_tightness == 3:
                break
            self._enter("calc")
            entered += 1
            offset = self.offsets[self.at]
            self.at += 1
            node = Call(offset, function, [node, self._sum(right_tightness)])
        self.depths["calc"] -= entered
        return node

    def _unary(self) -> Node:
        kind = self.kinds[self.at]
        if kind == "!" or (kind == "-" and self.kinds[self.at + 1] not in ("NUM_INT", "NUM_FLOAT")):
            offset, start = self.offsets[self.at], self.at
            while self.kinds[self.at] == kind:
                self.at += 1
            count = self.at - start
            node = self._member()
            return Call(offset, "!_" if kind == "!" else "-_", [node]) if count % 2 else node
        return self._member()

    def _member(self) -> Node:
        self._enter("member")
        entered = 1
        node = self._primary()
        while True:
            kind = self.kinds[self.at]
            if kind == ".":
                step = self._dot(node)
            elif kind == "[":
                step = self._index(node)
            else:
                break
            node = step
            self._enter("member")
            entered += 1
        self.depths["member"] -= entered
        return node

    def _dot(self, operand: Node) -> Node:
        offset = self.offsets[self.at]
        self.at += 1
        optional = self.kinds[self.at] == "?"
        if optional:
            self.at += 1
        name_at = self.offsets[self.at]
        name, plain = self._field_name()
        if optional:
            return Call(offset, "_?._", [operand, Literal(name_at, name)])
        if plain and self.kinds[self.at] == "(":
            return self._call(name, operand)
        return Select(offset, operand, name)

    def _field_name(self) -> tuple[str, bool]:
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise _NotInGrammar
        self.at += 1
        return (text, True) if kind == "IDENTIFIER" else (text[1:-1], False)

    def _index(self, operand: Node) -> Node:
        offset = self.offsets[self.at]
        self.at += 1
        optional = self.kinds[self.at] == "?"
        if optional:
            self.at += 1
        index = self._expression()
        self._expect("]")
        return Call(offset, "_[?_]" if optional else "_[_]", [operand, index])

    def _call(self, name: str, target: Node | None) -> Node:
        offset = self._expect("(")
        arguments: list[Node] = []
        if self.kinds[self.at] != ")":
            arguments.append(self._expression())
            while self.kinds[self.at] == ",":
                self.at += 1
                arguments.append(self._expression())
        self._expect(")")
        expander = self.macros.get((name, len(arguments), target is not None))
        if expander is not None:
            try:
                expanded = expander(offset, target, arguments)
            except MacroError as error:
                self.errs.append((error.offset, str(error)))
                return Literal(offset, None)
            if expanded is not None:
                return expanded
        return Call(offset, name, arguments, target)

    def _primary(self) -> Node:
        kind, offset = self.kinds[self.at], self.offsets[self.at]
        if kind in ("IDENTIFIER", "."):
            return self._name()
        if kind == "(":
            self.at += 1
            node = self._expression()
            self._expect(")")
            return node
        if kind == "[":
            self.at += 1
            return self._list(offset)
        if kind == "{":
            self.at += 1
            return MapNode(offset, self._entries(False))
        return self._literal()

    def _name(self) -> Node:
        start = self.offsets[self.at]
        dotted = self.kinds[self.at] == "."
        if dotted:
            self.at += 1
            if self.kinds[self.at] != "IDENTIFIER":
                raise _NotInGrammar
        prefix = "." if dotted else ""
        end = self.at + 1
        while self.kinds[end] == "." and self.kinds[end + 1] == "IDENTIFIER":
            end += 2
        if self.kinds[end] == "{":
            name = prefix + "".join(self.texts[self.at : end])
            self.at = end + 1
            return StructNode(self.offsets[end], name, self._entries(True))
        name, offset = self.texts[self.at], self.offsets[self.at]
        self.at += 1
        if name in RESERVED:
            self.errs.append((start, f"reserved identifier: {name}"))
        if self.kinds[self.at] == "(":
            return self._call(prefix + name, None)
        return Ident(offset, prefix + name)

    def _list(self, offset: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self.kinds[self.at] not in ("]", ","):
            if self.kinds[self.at] == "?":
                self.at += 1
                optional.add(len(elements))
            elements.append(self._element())
            if self.kinds[self.at] != "," or self.kinds[self.at + 1] == "]":
                break
            self.at += 1
            if self.kinds[self.at] == ",":
                raise _NotInGrammar
        if self.kinds[self.at] == ",":
            self.at += 1
        self._expect("]")
        return ListNode(offset, elements, frozenset(optional))

    def _element(self) -> Node:
        """An expression in a list; one that is a literal, of which there may be many, without a descent to it."""
        is_literal = self.kinds[self.at] in _LITERALS and self.kinds[self.at + 1] in (",", "]")
        return self._literal() if is_literal and max(self.depths.values()) < MAX_DEPTH else self._expression()

    def _entries(self, of_message: bool) -> list[Entry]:
        entries: list[Entry] = []
        while self.kinds[self.at] not in ("}", ","):
            optional = self.kinds[self.at] == "?"
            if optional:
                self.at += 1
            key = self._field_name()[0] if of_message else self._expression()
            offset = self._expect(":")
            entries.append(Entry(offset, key, self._expression(), optional))
            if self.kinds[self.at] != "," or self.kinds[self.at + 1] == "}":
                break
            self.at += 1
            if self.kinds[self.at] == ",":
                raise _NotInGrammar
        if self.kinds[self.at] == ",":
            self.at += 1
        self._expect("}")
        return entries

    def _literal(self) -> Node:
        kind, text, offset = self.kinds[self.at], self.texts[self.at], self.offsets[self.at]
        self.at += 1
        if kind == "-":
            kind, text = self.kinds[self.at], "-" + self.texts[self.at]
            self.at += 1
            if kind not in ("NUM_INT", "NUM_FLOAT"):
                raise _NotInGrammar
        if kind in ("true", "false", "null"):
            return Literal(offset, {"true": True, "false": False, "null": None}[kind])
        reader = _LITERALS.get(kind)
        if reader is None:
            raise _NotInGrammar
        try:
            return Literal(offset, reader(text))
        except ValueError as error:
            self.errs.append((offset, str(error)))
            return Literal(offset, None)


def _integer(text: str) -> int:
    digits = text.lstrip("-")
    value = int(digits[2:], 16) if digits.startswith("0x") else _decimal(digits, "invalid int literal")
    value = -value if text.startswith("-") else value
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("invalid int literal")
    return value


def _unsigned(text: str) -> UInt:
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else _decimal(digits, "invalid uint literal")
    if value >= 1 << 64:
        raise ValueError("invalid uint literal")
    return UInt(value)


def _decimal(digits: str, complaint: str) -> int:
    if len(digits) > 20 and len(digits.lstrip("0")) > 20:
        raise ValueError(complaint)
    return int(digits.lstrip("0") or "0")


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return value


def _bytes(text: str) -> bytes:
    return unquote_bytes(text[1:])


_LITERALS = {
    "NUM_INT": _integer,
    "NUM_UINT": _unsigned,
    "NUM_FLOAT": _double,
    "STRING": unquote,
    "BYTES": _bytes,
}
