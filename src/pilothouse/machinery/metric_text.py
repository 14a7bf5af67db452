"""The text form of metrics: how lines are written, and read again by those who work on whole pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:\\.|[^"\\])*)"')
"""A label in a line, with its value as it is written there."""
_ESCAPED: Final = re.compile(r"\\(.)")


def head(name: str, words: str, kind: str) -> tuple[str, str]:
    """What stands above the lines of a family."""
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


def label_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels as a line has them behind its name."""
    shown = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    return f"{{{shown}}}" if shown else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def unescape(value: str) -> str:
    """The value of a label, of how it is written."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value) if "\\" in value else value


def bound_text(value: float) -> str:
    """A bound as Go writes it, which is what rules and dashboards select by: with an exponent from a million on."""
    if value < 1e6:
        return number_text(value)
    _, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    first, *rest = map(str, digits)
    assert isinstance(exponent, int)
    return f"{first}{'.' if rest else ''}{''.join(rest)}e+{len(rest) + exponent:02}"


def number_text(value: float) -> str:
    """A value as a page shows it."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
