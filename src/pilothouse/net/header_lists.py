"""Headers that are lists: ``Connection: close, x-one``.

A megabyte of commas is half a million tokens. Nobody has so many of anything that is listed: what is beyond a thousand
is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_TOKENS: Final = 1000


def list_tokens(values: Iterable[bytes]) -> list[bytes]:
    """The tokens of all values of a header, without blanks around them; empty ones too."""
    return [token.strip() for token in b",".join(values).split(b",", MOST_TOKENS)[:MOST_TOKENS]]
