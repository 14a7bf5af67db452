"""Data: every built-in type, resource, feature gate and enumeration of the served Kubernetes release, as compact text.

Each file opens with comment lines that say what it is and how it was made; ``docs/next-release.md`` tells how to make
all of them anew. ``read`` leaves those lines out.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent  # not importlib.resources: what it imports for archives takes half a megabyte


def read(name: str) -> str:
    """The content of a file of the catalogue, without its header."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    while text.startswith("#"):
        text = text[text.index("\n") + 1 :]
    return text
