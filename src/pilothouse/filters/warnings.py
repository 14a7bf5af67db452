"""Warnings collected on the way become ``Warning`` headers of the answer, whatever the answer is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_TOTAL_LIMIT: Final = 4 * 1024
_SHORT: Final = 256
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Warnings with such characters are not sent."""


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """One header a warning. When they get too long together, each is cut, and more come only until that is too long."""
    texts = [text for text in dict.fromkeys(warnings) if text and _CONTROL.search(text) is None]
    if sum(map(len, texts)) <= _TOTAL_LIMIT:
        return [(b"warning", quote_warning(text)) for text in texts]
    headers: list[tuple[bytes, bytes]] = []
    whole = written = 0
    for text in texts:
        # Cutting begins with the warning that is too much; those before it are cut too, however many they are.
        if whole > _TOTAL_LIMIT and written >= _TOTAL_LIMIT:
            break
        whole += len(text)
        written += min(len(text), _SHORT)
        headers.append((b"warning", quote_warning(text[:_SHORT])))
    return headers


def quote_warning(text: str) -> bytes:
    """``299 - "text"``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("utf-8", "replace")
