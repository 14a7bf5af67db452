"""CSV as Go's encoding/csv reads it, for files that kube-apiserver accepts or refuses by that reader's rules.

Empty lines are skipped, CRLF counts as LF, a quote may stand only at the start and end of a field, and a quoted
field may span lines. Python's csv module forgives what Go refuses, hence this reader.
"""

from __future__ import annotations


def read_records(content: bytes) -> list[list[str]]:
    """All records, of any number of fields. Raises ``ValueError`` with Go's text."""
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if text.endswith("\r"):
        text = text[:-1]
    records: list[list[str]] = []
    position, line = 0, 1
    while position < len(text):
        if text[position] == "\n":
            position, line = position + 1, line + 1
            continue
        record, position, line = _read_record(text, position, line)
        records.append(record)
    return records


def _read_record(text: str, position: int, line: int) -> tuple[list[str], int, int]:
    fields: list[str] = []
    start_line = line
    while True:
        if text.startswith('"', position):
            field, position, line = _read_quoted(text, position, start_line, line)
        else:
            field, position = _read_plain(text, position, line)
        fields.append(field)
        if position >= len(text):
            return fields, position, line
        if text[position] == "\n":
            return fields, position + 1, line + 1
        position += 1


def _read_plain(text: str, position: int, line: int) -> tuple[str, int]:
    end = _end_of(text, position)
    field = text[position:end]
    quote = field.find('"')
    if quote >= 0:
        column = _column(text, position + quote)
        raise ValueError(f'parse error on line {line}, column {column}: bare " in non-quoted field')
    return field, end


def _read_quoted(text: str, position: int, start_line: int, line: int) -> tuple[str, int, int]:
    parts: list[str] = []
    position += 1
    while True:
        quote = text.find('"', position)
        if quote < 0:
            parts.append(text[position:])
            raise ValueError(_unterminated(text, position, start_line, line))
        part = text[position:quote]
        parts.append(part)
        line += part.count("\n")
        following = text[quote + 1 : quote + 2]
        if following == '"':
            parts.append('"')
            position = quote + 2
            continue
        if following in ("", ",", "\n"):
            return "".join(parts), quote + 1, line
        raise ValueError(_extraneous(text, quote, start_line, line))


def _extraneous(text: str, quote: int, start_line: int, line: int) -> str:
    where = f"line {line}, column {_column(text, quote)}"
    prefix = f"record on line {start_line}; " if start_line != line else ""
    return f'{prefix}parse error on {where}: extraneous or missing " in quoted-field'


def _unterminated(text: str, position: int, start_line: int, line: int) -> str:
    # The error is reported behind the last line that holds anything, its line end included.
    body = text[position:]
    last = line + body[:-1].count("\n") if body else line
    begin = text.rfind("\n", 0, len(text) - 1) + 1
    column = len(text[begin:].encode("utf-8", "surrogateescape")) + 1
    prefix = f"record on line {start_line}; " if start_line != last else ""
    return f'{prefix}parse error on line {last}, column {column}: extraneous or missing " in quoted-field'


def _end_of(text: str, position: int) -> int:
    comma = text.find(",", position)
    newline = text.find("\n", position)
    ends = [end for end in (comma, newline) if end >= 0]
    return min(ends) if ends else len(text)


def _column(text: str, position: int) -> int:
    begin = text.rfind("\n", 0, position) + 1
    return len(text[begin:position].encode("utf-8", "surrogateescape")) + 1
