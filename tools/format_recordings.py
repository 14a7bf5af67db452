"""Lay out recorded conversations with one field a line, so that what changes between releases can be read.

    python tools/format_recordings.py FILE_OR_FOLDER …

Only white space changes: numbers keep their spelling and strings their escapes, as the answers were recorded.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def layout(text: str) -> str:
    """The same JSON, a field or item a line, a space for each level."""
    tokens = TOKEN.findall(text)
    parts: list[str] = []
    depth, before = 0, ""
    for token in tokens:
        if before in ("{", "[") and token not in ("}", "]"):
            parts.append("\n" + " " * depth)
        if token in ("{", "["):
            depth += 1
        elif token in ("}", "]"):
            depth -= 1
            if before not in ("{", "["):
                parts.append("\n" + " " * depth)
        parts.append({",": ",\n" + " " * depth, ":": ": "}.get(token, token))
        before = token
    return "".join(parts) + "\n"


def main() -> None:
    """Rewrite what is not laid out yet."""
    given = [Path(argument) for argument in sys.argv[1:]]
    files = [file for path in given for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    for file in files:
        text = file.read_text()
        if (laid_out := layout(text)) != text:
            file.write_text(laid_out)


if __name__ == "__main__":
    main()
