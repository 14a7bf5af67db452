"""The strings extension: searching, cutting, replacing, splitting, joining and quoting.

Positions count code points. Results that would be out of all proportion to the cost limit are refused before they are
built.
"""

from __future__ import annotations

from typing import Any

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.library.formatting import format_string
from pilothouse.cel.values import CostLimitExceeded, fail, show

_MAX_RESULT = 20_000_000
_GO_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        fail(f"index out of range: {position}")
    return text[position : position + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        fail(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if start < 0:
        fail(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    if count >= 0:
        found = min(found, count)
    if len(text) + found * len(new) > _MAX_RESULT:
        raise CostLimitExceeded
    return text.replace(old, new, -1 if count < 0 else count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        return list(text) if count < 0 or count >= len(text) else [*text[: count - 1], text[count - 1 :]]
    return text.split(separator, -1 if count < 0 else count - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            fail(f"index out of range: {start}")
        return text[start:]
    if start > end:
        fail(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            fail(f"index out of range: {position}")
    return text[start:end]


def _join(items: list[Any], separator: str = "") -> str:
    total = len(separator) * len(items)
    for item in items:
        if item.__class__ is not str:
            fail(f"join: invalid input: {show(item)}")
        total += len(item)
    if total > _MAX_RESULT:
        raise CostLimitExceeded
    return separator.join(items)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


TEXT_LIBRARY = Library(
    (
        Function("charAt", [Overload("string_char_at_int", "string.(int) -> string", _char_at)]),
        Function(
            "indexOf",
            [
                Overload("string_index_of_string", "string.(string) -> int", _index_of),
                Overload("string_index_of_string_int", "string.(string, int) -> int", _index_of),
            ],
        ),
        Function(
            "lastIndexOf",
            [
                Overload("string_last_index_of_string", "string.(string) -> int", _last_index_of),
                Overload("string_last_index_of_string_int", "string.(string, int) -> int", _last_index_of),
            ],
        ),
        Function(
            "lowerAscii", [Overload("string_lower_ascii", "string.() -> string", lambda text: text.translate(_LOWER))]
        ),
        Function(
            "replace",
            [
                Overload("string_replace_string_string", "string.(string, string) -> string", _replace),
                Overload("string_replace_string_string_int", "string.(string, string, int) -> string", _replace),
            ],
        ),
        Function(
            "split",
            [
                Overload("string_split_string", "string.(string) -> list(string)", _split),
                Overload("string_split_string_int", "string.(string, int) -> list(string)", _split),
            ],
        ),
        Function(
            "substring",
            [
                Overload("string_substring_int", "string.(int) -> string", _substring),
                Overload("string_substring_int_int", "string.(int, int) -> string", _substring),
            ],
        ),
        Function("trim", [Overload("string_trim", "string.() -> string", lambda text: text.strip(_GO_SPACES))]),
        Function(
            "upperAscii", [Overload("string_upper_ascii", "string.() -> string", lambda text: text.translate(_UPPER))]
        ),
        Function("format", [Overload("string_format", "string.(list(dyn)) -> string", format_string)]),
        Function("strings.quote", [Overload("strings_quote", "(string) -> string", _quote)]),
        Function(
            "join",
            [
                Overload("list_join", "list(string).() -> string", _join),
                Overload("list_join_string", "list(string).(string) -> string", _join),
            ],
        ),
    )
)
