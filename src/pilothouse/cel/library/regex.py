"""`find` and `findAll`: parts of strings that match a pattern."""

from __future__ import annotations

from typing import Any

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.regular_expressions import compile_pattern
from pilothouse.cel.values import EvaluationError, fail


def _pattern(text: str) -> Any:
    try:
        return compile_pattern(text)
    except EvaluationError as error:
        return fail(f"Illegal regex: {error}")


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern).search(text)
    return found.group() if found is not None else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found: list[str] = []
    if count == 0:
        return found
    end = -1
    for match in _pattern(pattern).finditer(text):
        if match.end() == match.start() == end:
            continue  # an empty match right after another counts for nothing in Go
        found.append(match.group())
        end = match.end()
        if len(found) == count:
            break
    return found


REGEX_LIBRARY = Library(
    (
        Function("find", [Overload("string_find_string", "string.(string) -> string", _find)]),
        Function(
            "findAll",
            [
                Overload("string_find_all_string", "string.(string) -> list(string)", _find_all),
                Overload("string_find_all_string_int", "string.(string, int) -> list(string)", _find_all),
            ],
        ),
    )
)
