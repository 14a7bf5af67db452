"""Colours of the command line, for terminals only."""

from __future__ import annotations

from typing import Final

_CODES: Final = {"red": 31, "green": 32, "yellow": 33}


def coloured(text: str, colour: str, wanted: bool) -> str:
    """The text in a colour, or as it is where none is wanted."""
    return f"\033[{_CODES[colour]}m{text}\033[0m" if wanted and colour else text
