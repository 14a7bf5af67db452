"""Names by which an object is looked up: what cannot be one is refused before anything is searched."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_path_segment_name

_UNUSABLE: Final = frozenset({".", ".."})


def is_doubtful(name: str) -> bool:
    """Whether a name from a path may be one that no stored object can have. Paths have no empty names and slashes."""
    return name in _UNUSABLE or "%" in name


def check_looked_up(name: str) -> None:
    """Raise the 400 for a name that no stored object can have."""
    if not name:
        raise errors.bad_request("Name parameter required.")
    errs = check_path_segment_name(name)
    if errs:
        raise errors.bad_request(f"Name parameter invalid: {quote(name)}: {';'.join(errs)}")
