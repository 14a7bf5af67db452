"""Arithmetic on lists of resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pilothouse.apis.core.pod_spec.amounts import Amounts
from pilothouse.machinery.quantity import ZERO, Quantity

ONE = Quantity(1)


def count(number: int) -> Quantity:
    """A number of objects as a quantity."""
    return Quantity(number)


def plus(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Amounts:
    """The sum, of everything either side has."""
    total = dict(left)
    for name, quantity in right.items():
        total[name] = total[name] + quantity if name in total else quantity
    return total


def increase(now: Mapping[str, Quantity], before: Mapping[str, Quantity]) -> Amounts:
    """What is more than before; what shrank does not count."""
    grown: Amounts = {}
    for name, quantity in now.items():
        difference = quantity - before[name] if name in before else quantity
        if difference > ZERO:
            grown[name] = difference
    return grown


def nonzero(amounts: Mapping[str, Quantity]) -> Amounts:
    """Without what is zero."""
    return {name: quantity for name, quantity in amounts.items() if not quantity.is_zero}


def only(amounts: Mapping[str, Quantity], names: Collection[str]) -> Amounts:
    """What is named."""
    return {name: quantity for name, quantity in amounts.items() if name in names}


def same(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> bool:
    """Whether both hold equal amounts."""
    return left.keys() == right.keys() and all(quantity == right[name] for name, quantity in left.items())


def show(amounts: Mapping[str, Quantity]) -> str:
    """As messages list them."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
