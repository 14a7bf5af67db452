"""What a pod as a whole requests and is limited to, from its containers, init containers and its own resources.

Init containers run one after the other, so the largest counts; those that keep running (sidecars) add to all that start
after them and to the containers proper. Resources that the pod itself states win over the sum, for cpu, memory and huge
pages as far as asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pilothouse.machinery.quantity import ZERO, Quantity, QuantityError, parse

Amounts = dict[str, Quantity]
POD_LEVEL: Final = frozenset({"cpu", "memory"})


def read_amounts(texts: Mapping[str, Any] | None) -> Amounts:
    """Quantities of a resource list; what is none counts as nothing."""
    return {name: _read(text) for name, text in texts.items()} if texts else {}


def _read(text: Any) -> Quantity:
    try:
        return parse(text if isinstance(text, str) else str(text))
    except QuantityError:
        return ZERO


def add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    """Add to a sum, in place."""
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def raise_to(total: Amounts, least: Mapping[str, Quantity]) -> None:
    """Take the larger of each, in place."""
    for name, quantity in least.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity


def sum_containers(spec: Mapping[str, Any], field: str) -> Amounts:
    """The requests or limits of all containers together, as they run."""
    return combine(spec, lambda container: read_amounts((container.get("resources") or {}).get(field)))


def combine(spec: Mapping[str, Any], amounts_of: Callable[[dict[str, Any]], Amounts]) -> Amounts:
    """Sum over containers and sidecars, or the largest init container where that is more."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, amounts_of(container))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = amounts_of(container)
        if container.get("restartPolicy") == "Always":
            add(total, amounts)
            add(sidecars, amounts)
            raise_to(largest, sidecars)
        else:
            together = dict(amounts)
            add(together, sidecars)
            raise_to(largest, together)
    raise_to(total, largest)
    return total


def pod_amounts(spec: Mapping[str, Any], field: str, supported: Callable[[str], bool]) -> Amounts:
    """The sum over containers, with what the pod itself states in place of the resources ``supported`` for that."""
    total = sum_containers(spec, field)
    own = (spec.get("resources") or {}).get(field)
    if own:
        total.update({name: _read(text) for name, text in own.items() if supported(name)})
    return total
