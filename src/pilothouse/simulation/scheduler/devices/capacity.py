"""How much of a shared device a request consumes: what it asks for, rounded up to what the device's policy allows."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

Amounts = dict[str, quantity.Quantity]


def consumed(wanted: Mapping[str, str], capacity: Object) -> Amounts | None:
    """What each capacity of the device gives up; None where the device has not what is asked for."""
    if not wanted.keys() <= capacity.keys():
        return None
    amounts = {name: _consumed(wanted.get(name), stated) for name, stated in capacity.items()}
    if any(_violates(amounts[name], stated.get("requestPolicy") or {}) for name, stated in capacity.items()):
        return None
    return amounts


def fits(amounts: Amounts, capacity: Object, *taken: Mapping[str, quantity.Quantity]) -> bool:
    """Whether the device has that much left beside what is taken."""
    for name, amount in amounts.items():
        total = amount
        for each in taken:
            if name in each:
                total = total + each[name]
        if total > quantity.parse(str(capacity[name]["value"])):
            return False
    return True


def _consumed(wanted: str | None, stated: Object) -> quantity.Quantity:
    policy: Object = stated.get("requestPolicy") or {}
    if wanted is None:
        return quantity.parse(str(policy.get("default", stated["value"])))
    amount = quantity.parse(str(wanted))
    limits = policy.get("validRange") or {}
    if "min" in limits:
        return _round_up(amount, limits)
    allowed = (quantity.parse(str(each)) for each in policy.get("validValues") or ())
    return next((each for each in allowed if amount <= each), amount)


def _round_up(amount: quantity.Quantity, limits: Object) -> quantity.Quantity:
    least = quantity.parse(str(limits["min"]))
    if amount < least:
        return least
    if "step" not in limits:
        return amount
    step = quantity.parse(str(limits["step"]))
    over = amount.milli_value() - least.milli_value()
    steps = -(-over // step.milli_value())
    return least + step * steps


def _violates(amount: quantity.Quantity, policy: Object) -> bool:
    if "default" in policy and amount == quantity.parse(str(policy["default"])):
        return False
    limits = policy.get("validRange") or {}
    if "max" in limits and amount > quantity.parse(str(limits["max"])):
        return True
    if "step" in limits:
        over = amount.milli_value() - quantity.parse(str(limits["min"])).milli_value()
        return bool(over % quantity.parse(str(limits["step"])).milli_value())
    allowed = [] if limits else policy.get("validValues") or []
    return bool(allowed) and all(amount != quantity.parse(str(each)) for each in allowed)
