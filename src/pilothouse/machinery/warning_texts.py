"""Which of many warnings a client is told: an answer has room for a few kilobytes of them, whoever thinks of more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

TOTAL_LIMIT: Final = 4 * 1024
"""How long warnings may be together before each is cut."""
SHORT: Final = 256
"""What is left of one that is cut."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Warnings with such characters are not told."""


def telling(texts: Iterable[str]) -> list[str]:
    """Those that are told, each once, and no more of them than can be; none is much longer than all may be."""
    kept: dict[str, None] = {}
    whole = written = 0
    for text in texts:
        # Cutting begins with the warning that is too much; those before it are cut too, however many they are.
        if whole > TOTAL_LIMIT and written >= TOTAL_LIMIT:
            break
        text = text[: TOTAL_LIMIT + 1]
        if text and text not in kept and _CONTROL.search(text) is None:
            kept[text] = None
            whole += len(text)
            written += min(len(text), SHORT)
    return list(kept)
