"""Numbers of pods that may be missing or too many during a rollout: a count, or a share such as ``25%``."""

from __future__ import annotations

from pilothouse.apis.integers import IntegerRangeError, parse_integer
from pilothouse.apis.validation import NEGATIVE
from pilothouse.machinery.field_errors import FieldError, Named, Path, invalid
from pilothouse.machinery.names import check_percent

Amount = int | str
_MANY = (1 << 63) - 1


def validate_amount(amount: Amount, path: Path, errs: list[FieldError]) -> None:
    """A count of zero or more, or a percentage."""
    if isinstance(amount, str):
        errs += (invalid(path, Named(amount), message) for message in check_percent(amount))
    elif amount < 0:
        errs.append(invalid(path, amount, NEGATIVE))


def validate_not_above_all(amount: Amount, path: Path, errs: list[FieldError]) -> None:
    """A percentage up to 100%. Counts have no limit."""
    if isinstance(amount, str) and not check_percent(amount) and _number(amount[:-1]) > 100:
        errs.append(invalid(path, Named(amount), "must not be greater than 100%"))


def is_nothing(amount: Amount) -> bool:
    """Whether the amount is zero, as a count or as a share. What is neither counts as zero too."""
    if not isinstance(amount, str):
        return amount == 0
    return _number(amount if check_percent(amount) else amount[:-1]) == 0


def _number(text: str) -> int:
    try:
        return parse_integer(text)
    except IntegerRangeError:
        return _MANY
    except ValueError:
        return 0
