"""The CEL expressions of device selectors: they compile, give a bool, and do not cost too much."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.field_errors import FieldError, Path, forbidden, internal, invalid, too_long

LENGTH_LIMIT: Final = 10 * 1024


def check_selector(text: str, path: Path, errs: list[FieldError]) -> None:
    """A device selector's expression."""
    if len(text.encode()) > LENGTH_LIMIT:
        errs.append(too_long(path, "", LENGTH_LIMIT))
        return
    from pilothouse.cel.devices import COST_LIMIT, selector_cost
    from pilothouse.cel.policies import PolicyError

    try:
        if selector_cost(text) > COST_LIMIT:
            errs.append(forbidden(path, "too complex, exceeds cost limit"))
    except PolicyError as error:
        errs.append(internal(path, str(error)) if error.internal else invalid(path, text, str(error)))
