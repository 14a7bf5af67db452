"""Constraints of a claim: devices that must agree in an attribute, or differ in it.

A constraint is asked before a device is taken and told when one is given back, the last one first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.pools import Device

_VALUES = ("string", "int", "bool", "version")


class Constraint:
    """One constraint, and the values of the devices taken so far."""

    def __init__(self, stated: Object) -> None:
        self._requests: Collection[str] = stated.get("requests") or ()
        self._must_agree = "matchAttribute" in stated
        self._attribute: str = stated["matchAttribute"] if self._must_agree else stated["distinctAttribute"]
        self._taken: list[tuple[str, Any]] = []

    def concerns(self, request: str, full_name: str) -> bool:
        """Whether devices of the request, which may be an alternative of a larger one, are meant."""
        return not self._requests or request in self._requests or full_name in self._requests

    def take(self, device: Device) -> bool:
        """Count a device in, if it may be."""
        value = attribute_of(device, self._attribute)
        if value is None:
            return False
        if self._must_agree:
            if self._taken and self._taken[0] != value:
                return False
        elif value in self._taken:
            return False
        self._taken.append(value)
        return True

    def give_back(self) -> None:
        """Forget the device counted last."""
        self._taken.pop()


def attribute_of(device: Device, name: str) -> tuple[str, Any] | None:
    """Type and value of an attribute by its full name; the driver's own may stand there without their domain."""
    attributes: Object = device.spec.get("attributes") or {}
    found = attributes.get(name)
    if found is None:
        domain, _, identifier = name.partition("/")
        found = attributes.get(identifier) if domain == device.id.driver else None
    if found is None:
        return None
    return next(((kind, found[kind]) for kind in _VALUES if kind in found), None)
