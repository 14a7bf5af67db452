"""Texts that thousands of objects have in common (names of nodes and namespaces, phases), kept once.

A decoded object has its own copy of each. Whoever keeps some of them for as long as the object lives has 60 bytes for
every one; ``sys.intern`` would do the same, but some versions of Python never let go of what was interned.
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 65_536
_LONGEST: Final = 64
_texts: Final[dict[str, str]] = {}


def share_text(text: str) -> str:
    """An equal text, which is the same for all who ask while it is known."""
    found = _texts.get(text)
    if found is not None:
        return found
    if len(text) <= _LONGEST:
        if len(_texts) >= _MOST:
            _texts.clear()
        _texts[text] = text
    return text
