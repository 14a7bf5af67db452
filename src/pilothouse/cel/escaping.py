"""Names of properties as expressions write them: what is no identifier, or is a reserved word, is escaped."""

from __future__ import annotations

import re
from functools import lru_cache

RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
        "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z_](?:(?<!_)_|[A-Za-z0-9]++)*+\Z")
_ALLOWED = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_SPECIAL = re.compile(r"__|[./-]")
_SEQUENCES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Return the identifier for a property, or None if expressions cannot name it."""
    if name in RESERVED:
        return f"__{name}__"
    if _PLAIN.match(name):
        return name
    if not _ALLOWED.match(name):
        return None
    return _SPECIAL.sub(lambda found: _SEQUENCES[found.group()], name)


_ESCAPED = re.compile(r"__([^_]+)__")
_UNESCAPED = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


def unescape(identifier: str) -> str | None:
    """Return the property that an identifier stands for, or None if it holds a wrong escape."""
    found = _ESCAPED.fullmatch(identifier)
    if found and found.group(1) in RESERVED:
        return found.group(1)
    if any(word not in _UNESCAPED for word in _ESCAPED.findall(identifier)):
        return None
    return _ESCAPED.sub(lambda match: _UNESCAPED[match.group(1)], identifier)
