"""Semantic versions: `semver('1.2.3')` and comparisons by their rules."""

from __future__ import annotations

from typing import Any

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import struct
from pilothouse.cel.values import fail
from pilothouse.machinery.go_quote import quote

SEMVER_TYPE = struct("kubernetes.Semver")
_DIGITS = frozenset("0123456789")
_IDENTIFIER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_V = "kubernetes.Semver"


class Semver:
    """A version: three numbers and what was released before them; build metadata does not count."""

    __slots__ = ("numbers", "pre")
    cel_type = SEMVER_TYPE

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[int | str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and _compare(self, other) == 0

    def __hash__(self) -> int:
        return hash((self.numbers, self.pre))


def _number(text: str, part: str) -> int:
    if not all(char in _DIGITS for char in text):
        raise ValueError(f"Invalid character(s) found in {part.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{part} number must not contain leading zeroes {quote(text)}")
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) >= 1 << 64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if all(char in _DIGITS for char in text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        if len(text) > 20 or int(text) >= 1 << 64:
            raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
        return int(text)
    if not all(char in _IDENTIFIER for char in text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def parse_semver(text: str) -> Semver:
    """Read a version, or raise ValueError in kube-apiserver's words."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    number = _number(patch, "Patch")
    released = tuple(_pre_release(item) for item in pre.split(".")) if dash else ()
    for item in build.split(".") if plus else ():
        if not item:
            raise ValueError("Build meta data is empty")
        if not all(char in _IDENTIFIER for char in item):
            raise ValueError(f"Invalid character(s) found in build meta data {quote(item)}")
    return Semver((major, minor, number), released)


def _normalize(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in _DIGITS else "0" + stripped
    if len(parts) < 3 and any(char in parts[-1] for char in "+-"):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _to_semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse_semver(_normalize(text) if normalize else text)
    except ValueError as error:
        return fail(str(error))


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(_normalize(text) if normalize else text)
    except ValueError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if not left.pre or not right.pre:
        return (not left.pre) - (not right.pre)
    for a, b in zip(left.pre, right.pre, strict=False):
        if a != b or a.__class__ is not b.__class__:
            return _compare_identifiers(a, b)
    return (len(left.pre) > len(right.pre)) - (len(left.pre) < len(right.pre))


def _compare_identifiers(a: Any, b: Any) -> int:
    if a.__class__ is not b.__class__:
        return -1 if a.__class__ is int else 1
    return 1 if a > b else -1


SEMVER_LIBRARY = Library(
    (
        Function(
            "semver",
            [
                Overload("string_to_semver", f"(string) -> {_V}", _to_semver),
                Overload("string_bool_to_semver", f"(string, bool) -> {_V}", _to_semver),
            ],
        ),
        Function(
            "isSemver",
            [
                Overload("is_semver_string", "(string) -> bool", _is_semver),
                Overload("is_semver_string_bool", "(string, bool) -> bool", _is_semver),
            ],
        ),
        Function(
            "isGreaterThan",
            [Overload("semver_is_greater_than", f"{_V}.({_V}) -> bool", lambda a, b: _compare(a, b) == 1)],
        ),
        Function(
            "isLessThan", [Overload("semver_is_less_than", f"{_V}.({_V}) -> bool", lambda a, b: _compare(a, b) == -1)]
        ),
        Function("compareTo", [Overload("semver_compare_to", f"{_V}.({_V}) -> int", _compare)]),
        *(
            Function(
                word,
                [Overload(f"semver_{word}", f"{_V}.() -> int", lambda version, place=place: version.numbers[place])],
            )
            for place, word in enumerate(("major", "minor", "patch"))
        ),
    ),
    types=(SEMVER_TYPE,),
)
