"""What makes the policy of a shared device's capacity wrong: which amounts may be asked for.

Amounts are whole numbers, rounded up, unless a feature allows fractions.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, required, too_many
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import Quantity, parse

_OPTIONS_LIMIT: Final = 10
_INT64_MAX: Final = 2**63 - 1


def validate_policy(most: str, policy: Object, path: Path, errs: list[FieldError], *, fractions: bool = False) -> None:
    """Errors of a request policy; ``most`` is the capacity itself."""
    values, span, default = policy.get("validValues") or [], policy.get("validRange"), policy.get("default")
    if values and span is not None:
        why = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        errs.append(forbidden(path, why))
    elif values:
        if default is None:
            errs.append(required(path.child("default"), "required when validValues is defined"))
        else:
            _validate_values(default, most, values, path.child("validValues"), errs, fractions)
    elif span is not None:
        if default is None:
            errs.append(required(path.child("default"), "required when validRange is defined"))
        else:
            _validate_range(default, most, span, path.child("validRange"), errs, fractions)


def _validate_values(
    default: str, most: str, values: list[str], path: Path, errs: list[FieldError], fractions: bool
) -> None:
    amounts = [parse(value) for value in values]
    unsorted = [at for at in range(1, len(amounts)) if amounts[at - 1] > amounts[at]]
    errs += (invalid(path.index(at), values[at], "values must be sorted in ascending order") for at in unsorted)
    if len(values) > _OPTIONS_LIMIT:
        errs.append(too_many(path, len(values), _OPTIONS_LIMIT))
        errs.append(invalid(path, default, "default value is not valid according to the requestPolicy"))
        return
    limit = parse(most)
    for at, amount in enumerate(amounts):
        if amount > limit:
            errs.append(invalid(path.index(at), values[at], f"option is larger than capacity value: {most}"))
    keys = [str(amount.as_decimal() if fractions else amount.value()) for amount in amounts]
    errs += (duplicate(path.index(at), key) for at, key in enumerate(keys) if key in keys[:at])
    if parse(default) not in amounts:
        errs.append(invalid(path, default, "default value is not valid according to the requestPolicy"))


def _validate_range(default: str, most: str, span: Object, path: Path, errs: list[FieldError], fractions: bool) -> None:
    least, top, step = span.get("min"), span.get("max"), span.get("step")
    if least is None:
        errs.append(required(path.child("min"), "required when validRange is defined"))
        return
    if parse(least) > parse(most):
        errs.append(invalid(path.child("min"), least, f"min is larger than capacity value: {most}"))
    if parse(default) < parse(least):
        errs.append(invalid(path.child("default"), default, f"default is less than min: {least}"))
    if top is not None:
        if parse(least) > parse(top):
            errs.append(invalid(path.child("max"), least, f"min is larger than max: {top}"))
        if parse(top) > parse(most):
            errs.append(invalid(path.child("max"), top, f"max is larger than capacity value: {most}"))
        if parse(default) > parse(top):
            errs.append(invalid(path.child("default"), default, f"default is more than max: {top}"))
    named = {"default": default, "min": least, "max": top, "step": step}
    amounts = {name: parse(text) for name, text in named.items() if text is not None}
    fractional = fractions and not all(_is_whole(amount) for amount in amounts.values())
    if fractional:
        bad = [name for name, amount in amounts.items() if not _is_whole(amount, 1000)]
        errs += (invalid(path.child(n), named[n], "value cannot be represented as a milli value") for n in bad)
        if bad:
            return
    if step is not None:
        _validate_step(amounts, named, most, fractional, path, errs)


def _is_whole(amount: Quantity, parts: int = 1) -> bool:
    """Whether the amount is a whole number of parts of one; exact for any size."""
    numerator, denominator = amount.as_decimal().as_integer_ratio()
    return numerator * parts % denominator == 0


def _validate_step(
    amounts: dict[str, Quantity], named: dict[str, Any], most: str, fractional: bool, path: Path, errs: list[FieldError]
) -> None:
    step, least, where = amounts["step"], amounts["min"], path.child("step")
    if step.sign <= 0:
        errs.append(invalid(where, named["step"], "must be greater than zero"))
        return
    first = least + step
    if first > parse(most):
        why = f"one step {first} is larger than capacity value: {most}"
        errs.append(invalid(where, named["step"], why))
    if not fractional and _out_of_bounds(amounts, named, path, errs):
        return
    taken = {name: amount.milli_value() if fractional else amount.value() for name, amount in amounts.items()}
    for name in ("default", "max"):
        if name in taken and (taken[name] - taken["min"]) % taken["step"]:
            why = f"value is not a multiple of a given step ({named['step']}) from ({named['min']})"
            errs.append(invalid(where, named[name], why))


def _out_of_bounds(amounts: dict[str, Quantity], named: dict[str, Any], path: Path, errs: list[FieldError]) -> bool:
    found = False
    for name, amount in amounts.items():
        if amount.sign < 0:
            errs.append(invalid(path.child(name), named[name], "must be greater than or equal to 0"))
        elif amount.as_decimal() > _INT64_MAX:
            errs.append(invalid(path.child(name), named[name], f"must not be larger than {_INT64_MAX}"))
        else:
            continue
        found = True
    return found
