"""Where the CEL expressions of device selectors are compiled.

``compile_expressions`` is the one place to plug a compiler in; without one, only the length is checked.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.field_errors import FieldError, Path, too_long

LENGTH_LIMIT: Final = 10 * 1024


def check_selector(text: str, path: Path, errs: list[FieldError]) -> None:
    """A device selector's expression."""
    if len(text.encode()) > LENGTH_LIMIT:
        errs.append(too_long(path, "", LENGTH_LIMIT))
    else:
        errs += compile_expressions(text, path)


def compile_expressions(text: str, path: Path) -> list[FieldError]:
    """Faults of an expression that does not compile. Every expression passes until a compiler is plugged in here."""
    return []
