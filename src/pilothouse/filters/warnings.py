"""Warnings collected on the way become ``Warning`` headers of the answer, whatever the answer is."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.warning_texts import SHORT, TOTAL_LIMIT, telling


def warning_headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """One header a warning. When they get too long together, each is cut, and more come only until that is too long."""
    texts = telling(warnings)
    longest = None if sum(map(len, texts)) <= TOTAL_LIMIT else SHORT
    return [(b"warning", quote_warning(text[:longest])) for text in texts]


def quote_warning(text: str) -> bytes:
    """``299 - "text"``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("utf-8", "replace")
