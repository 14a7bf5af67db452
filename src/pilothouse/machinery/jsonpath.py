"""JSONPath as kubectl and printer columns know it: ``.status.conditions[?(@.type=="Ready")].status``.

A path is parsed once into steps, each a function from a list of values to a list of values; missing keys give nothing.

    .name  ['name']  [0]  [-1]  [1:3:2]  [*]  .*  ..name  ['a','b']  [0,2]  [?(@.x == 1)]  [?(@.x)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

Values = list[Any]
Step = Callable[[Values], Values]
_NAME: Final = re.compile(r"(?:\\.|[^\s.\[\]\\{}?@'\"(),=<>!|*$]++)++")
_QUOTED: Final = re.compile(r"'(?:\\.|[^'\\]++)*+'|\"(?:\\.|[^\"\\]++)*+\"")
_MOST_DIGITS: Final = 18
_SLICE: Final = re.compile(r"(-?[0-9]*)(?::(-?[0-9]*)(?::(-?[0-9]*))?)?")
_FILTER: Final = re.compile(r"\?\((.*)\)", re.DOTALL)
_OPERATOR: Final = re.compile(r"(==|!=|<=|>=|<|>|=)")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: bool(a == b), "!=": lambda a, b: bool(a != b), "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b), "<=": lambda a, b: bool(a <= b), ">=": lambda a, b: bool(a >= b),
}  # fmt: skip
_VISITED_LIMIT: Final = 100_000


class JsonPathError(ValueError):
    """The text is no path."""


class JsonPath:
    """A parsed path."""

    __slots__ = ("_steps", "source")

    def __init__(self, source: str, steps: tuple[Step, ...]) -> None:
        self.source = source
        self._steps = steps

    def find(self, value: Any) -> Values:
        """All values the path leads to."""
        found = [value]
        for step in self._steps:
            try:
                found = step(found)
            except (TypeError, KeyError, IndexError):
                return []
            if not found:
                return found
        return found


@lru_cache(maxsize=8192)
def parse(text: str) -> JsonPath:
    """Read a path without braces. Raises ``JsonPathError``."""
    return JsonPath(text, tuple(_steps(text)))


def _steps(text: str) -> Iterator[Step]:
    at = 1 if text.startswith(("$", "@")) else 0
    while at < len(text):
        char = text[at]
        if char == "[":
            end = _closing(text, at)
            yield _bracket(text[at + 1 : end].strip())
            at = end + 1
        elif char == ".":
            recursive = text.startswith("..", at)
            at += 2 if recursive else 1
            if recursive:
                yield _descend
            if text.startswith("*", at):
                yield _all
                at += 1
            elif text.startswith("[", at) or at == len(text):
                continue
            else:
                step, at = _named(text, at)
                yield step
        elif at == 0 or char == "*":
            if char == "*":
                yield _all
                at += 1
            else:
                step, at = _named(text, at)
                yield step
        else:
            raise JsonPathError(f"unrecognized character in action: U+{ord(char):04X} '{char}'")


def _named(text: str, at: int) -> tuple[Step, int]:
    found = _NAME.match(text, at)
    if found is None:
        raise JsonPathError(f"unrecognized character in action: U+{ord(text[at]):04X} '{text[at]}'")
    return _field(re.sub(r"\\(.)", r"\1", found[0])), found.end()


def _closing(text: str, start: int) -> int:
    depth, quoted = 0, ""
    at = start
    while at < len(text):
        char = text[at]
        if quoted:
            if char == "\\":
                at += 1
            elif char == quoted:
                quoted = ""
        elif char in "'\"":
            quoted = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise JsonPathError("unterminated array" if not quoted else "unterminated quoted string")


def _bracket(inside: str) -> Step:
    found = _FILTER.fullmatch(inside)
    if found is not None:
        return _filter(found[1].strip())
    if inside == "*":
        return _all
    if inside.startswith(("'", '"')):
        names = [_unquote(part.strip()) for part in _split(inside)]
        return _field(names[0]) if len(names) == 1 else _union([_field(name) for name in names])
    if "," in inside:
        return _union([_bracket(part.strip()) for part in inside.split(",")])
    sliced = _SLICE.fullmatch(inside)
    if sliced is None or inside in ("", "-"):
        raise JsonPathError(f"invalid array index {inside}")
    return _slice(inside)


def _split(inside: str) -> list[str]:
    return _QUOTED.findall(inside)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _field(name: str) -> Step:
    def step(values: Values) -> Values:
        return [value[name] for value in values if value.__class__ is dict and name in value]

    return step


def _union(steps: list[Step]) -> Step:
    return lambda values: [found for value in values for step in steps for found in step([value])]


def _all(values: Values) -> Values:
    found: Values = []
    for value in values:
        if value.__class__ is dict:
            found += (value[key] for key in sorted(value))
        elif value.__class__ is list:
            found += value
    return found


def _descend(values: Values) -> Values:
    found: Values = []
    waiting = list(reversed(values))
    while waiting and len(found) < _VISITED_LIMIT:
        value = waiting.pop()
        found.append(value)
        waiting += (below for below in reversed(_all([value])) if below.__class__ in (dict, list))
    return found


def _slice(inside: str) -> Step:
    given = inside.split(":")
    for part in given:
        if len(part) > _MOST_DIGITS:
            raise JsonPathError(f"array index {part} is not a number")
    parts = [int(part) if part else None for part in given]
    if len(parts) == 1:
        position = parts[0] or 0

        def pick(values: Values) -> Values:
            return [v[position] for v in values if v.__class__ is list and -len(v) <= position < len(v)]

        return pick
    wanted = slice(*parts)
    return lambda values: [item for v in values if v.__class__ is list for item in v[wanted]]


def _filter(text: str) -> Step:
    found = _OPERATOR.search(_blank_quoted(text))
    if found is None:
        path = parse(text)
        return lambda values: [item for item in _all(values) if path.find(item)]
    compare = _OPERATORS.get(found[0])
    if compare is None:
        raise JsonPathError(f"unrecognized filter operator {found[0]}")
    left, right = _operand(text[: found.start()].strip()), _operand(text[found.end() :].strip())

    def step(values: Values) -> Values:
        return [item for item in _all(values) if _holds(compare, left(item), right(item))]

    return step


def _holds(compare: Callable[[Any, Any], bool], left: Values, right: Values) -> bool:
    try:
        return len(left) == 1 and len(right) == 1 and compare(left[0], right[0])
    except TypeError:
        return False


def _blank_quoted(text: str) -> str:
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)


def _operand(text: str) -> Callable[[Any], Values]:
    if text.startswith(("@", "$", ".")):
        path = parse(text)
        return path.find
    value: Any
    if text[:1] in ("'", '"'):
        value = _unquote(text)
    elif text in ("true", "false"):
        value = text == "true"
    else:
        try:
            value = float(text) if "." in text else int(text)
        except ValueError:
            raise JsonPathError(f"unrecognized identifier {text}") from None
    return lambda item: [value]
