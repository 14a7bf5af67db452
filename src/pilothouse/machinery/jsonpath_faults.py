"""What Go's parser of JSONPath templates says is wrong with one. Takes time in proportion to the text.

``jsonpath`` reads the paths that are evaluated here and has words of its own; where a path is only kept, as in the type
checks of policies, its fault is told in kube-apiserver's.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final

_FIELD: Final = re.compile(r"(?:\\(?s:.)|\\\Z|[^ \t\r\n.,\[\]$@{}\\])*+")
_IDENTIFIER: Final = re.compile(r"[^ \t\r\n.,\[\]$@{}]++")
_ARRAY_END: Final = re.compile(r"[\]\n]")
_IN_FILTER: Final = re.compile(r"[\"'\n)]")
_COMPARISON: Final = re.compile(r"([^!<>=]++)[!<>=]++(?!\Z)(.++)")
_KEY: Final = re.compile(r"'([^']*+)'")
_SLICE: Final = re.compile(r"(-?[0-9]*+)(:-?[0-9]*+)?(:-?[0-9]*+)?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]++(?:\.[0-9]*+)?")
_QUOTED: Final = {
    quote: re.compile(rf"(?:[^\\{quote}]|\\(?:[abfnrtv\\{quote}]|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|[0-7]{{3}}))*+")
    for quote in "\"'"
}
_LARGEST: Final = 2**63


class _Fault(ValueError):
    """What is wrong."""


def fault_of(template: str) -> str:
    """The fault of a text with paths in braces; empty where there is none."""
    try:
        _check(template)
    except _Fault as fault:
        return str(fault)
    return ""


def _check(template: str) -> None:
    at = template.find("{")
    while at >= 0:
        at = template.find("{", _Action(template, at + 1).end())


class _Action:
    """One path in braces, read from its first character on."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at

    def end(self) -> int:
        """Where the text goes on behind its brace."""
        text = self._text
        descends = False
        while not text.startswith("}", self._at):
            if text.startswith("..", self._at):
                if descends:
                    raise _Fault("invalid multiple recursive descent")
                descends = True
                self._at += 2
                if _is_word(text[self._at : self._at + 1]):
                    descends = False
                    self._pass(_FIELD)
            elif self._step():
                descends = False
        return self._at + 1

    def _step(self) -> bool:
        """Read one part; whether it is more than a space or the mark of an object."""
        text, first = self._text, self._text[self._at : self._at + 1]
        if text.startswith("[?(", self._at):
            self._filter()
            return True
        if first in ("", "\r", "\n"):
            raise _Fault("unclosed action")
        self._at += 1
        if first in " @$":
            return False
        if first == "[":
            self._array()
        elif first in "\"'":
            self._quote(first)
        elif first == ".":
            self._pass(_FIELD)
        elif first in "+-" or _is_digit(first):
            self._number()
        elif _is_word(first):
            self._pass(_IDENTIFIER)
        else:
            raise _Fault(f"unrecognized character in action: {_shown(first)}")
        return True

    def _pass(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()

    def _number(self) -> None:
        start = self._at - 1
        while (each := self._text[self._at : self._at + 1]) and (each == "." or _is_digit(each)):
            self._at += 1
        value = self._text[start : self._at]
        if _NUMBER.fullmatch(value) is None or math.isinf(float(value)):
            raise _Fault(f"cannot parse number {value}")

    def _quote(self, quote: str) -> None:
        text, start = self._text, self._at - 1
        while True:
            found = re.compile(rf"[\n{quote}]").search(text, self._at)
            if found is None or found[0] == "\n":
                raise _Fault("unterminated quoted string")
            self._at = found.end()
            if text[self._at - 2] != "\\":
                break
        value = text[start : self._at]
        if _QUOTED[quote].fullmatch(value[1:-1]) is None:
            raise _Fault(f"unquote string {value} error invalid syntax")

    def _array(self) -> None:
        found = _ARRAY_END.search(self._text, self._at)
        if found is None or found[0] == "\n":
            raise _Fault("unterminated array")
        inside = self._text[self._at : found.start()]
        self._at = found.end()
        parts = inside.split(",")
        if len(parts) > 1:
            for part in parts:
                _check(f"{{[{part.strip(' ')}]}}")
        elif key := _KEY.fullmatch(inside):
            _check(f"{{.{key[1]}}}")
        elif inside != "*":
            _check_index(inside)

    def _filter(self) -> None:
        text, start = self._text, self._at + 3
        begun = ended = False
        pair, at = "", start
        while True:
            found = _IN_FILTER.search(text, at)
            if found is None or found[0] == "\n":
                raise _Fault("unterminated filter")
            at = found.end()
            if found[0] == ")":
                if begun == ended:
                    break
            elif not begun:
                begun, pair = True, found[0]
            elif text[at - 2] != "\\" and found[0] == pair:
                ended = True
        if not text.startswith("]", at):
            raise _Fault("unclosed array expect ]")
        self._at = at + 1
        inside = text[start : at - 1]
        compared = _COMPARISON.fullmatch(inside)
        for part in (inside,) if compared is None else compared.groups():
            _check(f"{{{part}}}")


def _check_index(text: str) -> None:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise _Fault(f"invalid array index {text}")
    for group in found.groups(""):
        number = group.removeprefix(":")
        if number and (number == "-" or not -_LARGEST <= int(number[:40]) < _LARGEST):
            raise _Fault(f"array index {number} is not a number")


def _is_digit(character: str) -> bool:
    return bool(character) and unicodedata.category(character) == "Nd"


def _is_word(character: str) -> bool:
    return bool(character) and (character == "_" or unicodedata.category(character)[0] == "L" or _is_digit(character))


def _shown(character: str) -> str:
    """As ``%#U`` shows it."""
    code = f"U+{ord(character):04X}"
    return f"{code} '{character}'" if character.isprintable() else code
