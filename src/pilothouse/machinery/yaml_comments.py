"""Comments of a YAML document, and putting them into another one: each goes with the field it stood at.

A comment stands above a field or behind it. One whose field the other document does not have goes to its top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Comments:
    """Comments by the path of their field: whole lines above it, and the rest of its line."""

    above: dict[Path, list[str]] = field(default_factory=dict)
    behind: dict[Path, str] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)


def read_comments(text: str) -> Comments:
    """All comments of a document."""
    found = Comments()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines()
    places, inside = _places(root, lines)
    waiting: list[str] = []
    for number, line in enumerate(lines):
        if number in inside:
            continue
        if line.lstrip().startswith("#"):
            waiting.append(line.strip())
        elif number in places:
            path, rest = places[number]
            if waiting:
                found.above[path], waiting = waiting, []
            if rest.startswith("#"):
                found.behind[path] = rest
    found.last = waiting
    return found


def write_comments(text: str, comments: Comments) -> str:
    """A document with comments, each at its field."""
    lines = text.splitlines()
    places, _ = _places(yaml.compose(text, Loader=yaml.SafeLoader), lines)
    paths = {path for path, _ in places.values()}
    homeless = [line for path, above in comments.above.items() if path not in paths for line in above]
    homeless += (rest for path, rest in comments.behind.items() if path not in paths)
    made = list(homeless)
    for number, line in enumerate(lines):
        path = places[number][0] if number in places else None
        if path is not None:
            indent = " " * (len(line) - len(line.lstrip()))
            made += (indent + comment for comment in comments.above.get(path, ()))
            rest = comments.behind.get(path)
            line = f"{line}  {rest}" if rest else line
        made.append(line)
    return "\n".join([*made, *comments.last]) + "\n"


def _places(root: Any, lines: list[str]) -> tuple[dict[int, tuple[Path, str]], set[int]]:
    """The field that begins on each line with what follows it there, and the lines inside long texts."""
    places: dict[int, tuple[Path, str]] = {}
    inside: set[int] = set()
    for path, start, value in _fields(root, ()):
        line = start.start_mark.line
        if isinstance(value, yaml.ScalarNode):
            end = value.end_mark
            if value.style in ("|", ">"):
                inside.update(range(line + 1, end.line if end.column == 0 else end.line + 1))
                rest = ""
            else:
                inside.update(range(line + 1, end.line + 1))
                rest = lines[line][end.column :].strip() if end.line == line else ""
        elif value.start_mark.line > line:
            rest = lines[line][start.end_mark.column + 1 :].strip()
        else:
            rest = ""
        places.setdefault(line, (path, rest))
    return places, inside


def _fields(node: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Fields of maps and items of lists: their path, where they begin, their value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), key, value
            yield from _fields(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            inner = list(_fields(item, (*path, at)))
            yield from inner
            if not inner:
                yield (*path, at), item, item
