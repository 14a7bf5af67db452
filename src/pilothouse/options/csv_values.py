"""Comma separated flag values, read as one CSV record the way Go's ``encoding/csv`` does.

A field may be quoted to hold commas (``"a,b",c``); a doubled quote inside stands for one. Only the first record counts.
"""

from __future__ import annotations

from pilothouse.options.go_numbers import ValueRefused


def read_csv(text: str) -> tuple[str, ...]:
    """The fields of the record; an empty text has none."""
    if not text:
        return ()
    if '"' not in text:
        return tuple(text.split("\n", 1)[0].split(","))
    fields: list[str] = []
    position = 0
    while True:
        quoted = text.startswith('"', position)
        field, position = _quoted_field(text, position) if quoted else _plain_field(text, position)
        fields.append(field)
        if position >= len(text) or text[position] == "\n":
            return tuple(fields)
        position += 1


def _plain_field(text: str, start: int) -> tuple[str, int]:
    ends = [end for end in (text.find(",", start), text.find("\n", start)) if end >= 0]
    end = min(ends, default=len(text))
    quote = text.find('"', start, end)
    if quote >= 0:
        raise ValueRefused(f'parse error on line 1, column {quote + 1}: bare " in non-quoted-field')
    return text[start:end], end


def _quoted_field(text: str, start: int) -> tuple[str, int]:
    parts: list[str] = []
    position = start + 1
    while True:
        end = text.find('"', position)
        if end < 0:
            raise _unbalanced(len(text) + 1)
        parts.append(text[position:end])
        follower = text[end + 1 : end + 2]
        if follower == '"':
            parts.append('"')
            position = end + 2
        elif follower in ("", ",", "\n"):
            return "".join(parts), end + 1
        else:
            raise _unbalanced(end + 1)


def _unbalanced(column: int) -> ValueRefused:
    return ValueRefused(f'parse error on line 1, column {column}: extraneous or missing " in quoted-field')
