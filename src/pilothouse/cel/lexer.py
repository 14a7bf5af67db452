"""Cuts the text of an expression into tokens.

Text that is no token is reported in kube-apiserver's words and skipped as far as kube-apiserver's automaton had read,
so that one wrong character yields the same list of errors.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = (
    r"[rR]\"\"\"(?:[^\"]++|\"(?!\"\"))*+\"\"\"|[rR]'''(?:[^']++|'(?!''))*+'''"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\\"]++|\"(?!\"\"))*+\"\"\"|'''(?:{_ESCAPE}|[^\\']++|'(?!''))*+'''"
    r"|[rR]\"[^\"\n\r]*\"|[rR]'[^'\n\r]*'"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r]++)*+\"|'(?:{_ESCAPE}|[^\\'\n\r]++)*+'"
)
_TOKEN = re.compile(
    r"(?P<skip>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,!?:+*/%-])"
)
# What the automaton has read when it gives up, without the character that stopped it.
_STUCK = re.compile(
    rf"`[A-Za-z0-9_./ -]*"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r]++)*+(?:\\(?:[xX][0-9a-fA-F]{{0,2}}|u[0-9a-fA-F]{{0,4}}|U[0-9a-fA-F]{{0,8}}"
    r"|[0-3][0-7]?)?)?"
    rf"|'(?:{_ESCAPE}|[^\\'\n\r]++)*+(?:\\(?:[xX][0-9a-fA-F]{{0,2}}|u[0-9a-fA-F]{{0,4}}|U[0-9a-fA-F]{{0,8}}"
    r"|[0-3][0-7]?)?)?"
    r"|[=&|]"
)
KEYWORDS = frozenset({"in", "true", "false", "null"})


class Tokens(NamedTuple):
    """Parallel lists ended by `<EOF>`; kinds of signs and keywords are their text; errors are (from, to, message)."""

    kinds: list[str]
    texts: list[str]
    offsets: list[int]
    errs: list[tuple[int, int, str]]


def tokenize(text: str) -> Tokens:
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    errs: list[tuple[int, int, str]] = []
    position, end = 0, len(text)
    match = _TOKEN.match
    while position < end:
        found = match(text, position)
        if found is None:
            position = _report(text, position, errs)
            continue
        kind = found.lastgroup
        if kind != "skip":
            word = found.group()
            if kind == "sign" or (kind == "IDENTIFIER" and word in KEYWORDS):
                kind = word
            kinds.append(kind or "")
            texts.append(word)
            offsets.append(position)
        position = found.end()
    kinds.append("<EOF>")
    texts.append("<EOF>")
    offsets.append(end)
    return Tokens(kinds, texts, offsets, errs)


def _report(text: str, position: int, errs: list[tuple[int, int, str]]) -> int:
    stuck = _STUCK.match(text, position)
    stop = min(stuck.end() if stuck else position, len(text) - 1) + 1
    read = text[position:stop].replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    errs.append((position, stop, f"token recognition error at: '{read}'"))
    return stop
