"""Which node ports a service needs: pure functions of the service and the set of allocated ports.

A plan takes ports from the set and says which port of the service gets which number; nothing in the service itself is
changed until the set has been kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pilothouse.apis.core.service.fields import (
    Spec,
    allocates_node_ports,
    has_node_ports,
    needs_health_check,
    node_ports,
)
from pilothouse.controlplane.allocation.families import SERVICE
from pilothouse.controlplane.allocation.ranges import PortSet, RangeError
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid

_PORTS = Path("spec", "ports")


@dataclass(slots=True)
class PortPlan:
    """What to do: numbers for the service's ports by position, its health check's, and what to give back or up."""

    numbers: dict[int, int] = field(default_factory=dict)
    health_check: int = 0
    allocated: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    """Ports to give back, but only after the service has been written."""

    def apply(self, spec: Spec) -> None:
        """Write the numbers into the service."""
        for at, number in self.numbers.items():
            spec["ports"][at]["nodePort"] = number
        if self.health_check:
            spec["healthCheckNodePort"] = self.health_check

    def take(self, ports: PortSet, port: int) -> None:
        ports.allocate(port)
        self.allocated.append(port)

    def take_next(self, ports: PortSet) -> int:
        port = ports.allocate_next()
        self.allocated.append(port)
        return port


def plan_create(spec: Spec, name: str, ports: PortSet) -> PortPlan:
    """Ports for a new service: one number for each port number, shared between its protocols."""
    plan = PortPlan()
    if has_node_ports(spec):
        _plan_new_ports(plan, spec, name, ports)
    if needs_health_check(spec):
        _plan_health_check(plan, spec, ports)
    return plan


def _plan_new_ports(plan: PortPlan, spec: Spec, name: str, ports: PortSet) -> None:
    given = spec.get("ports") or []
    requested = _requested(given)
    chosen: dict[int, int] = {}
    for at, port in enumerate(given):
        number, own = port.get("port", 0), port.get("nodePort", 0)
        if not own and not allocates_node_ports(spec):
            continue
        if number not in chosen:
            wanted = requested.get(number, 0)
            chosen[number] = wanted or _take_next(plan, ports)
            if wanted:
                _take(plan, ports, name, at, wanted)
            plan.numbers[at] = chosen[number]
        elif not own:
            plan.numbers[at] = chosen[number]
        elif own != chosen[number]:
            _take(plan, ports, name, at, own)


def _requested(given: list[dict[str, Any]]) -> dict[int, int]:
    """The node port that is asked for, for whichever protocol of a port number comes first, by that number."""
    return {port.get("port", 0): port["nodePort"] for port in reversed(given) if port.get("nodePort")}


def _take(plan: PortPlan, ports: PortSet, name: str, at: int, number: int) -> None:
    try:
        plan.take(ports, number)
    except RangeError as error:
        wrong = [invalid(_PORTS.index(at).child("nodePort"), number, str(error))]
        raise errors.invalid(SERVICE, name, wrong) from None


def _take_next(plan: PortPlan, ports: PortSet) -> int:
    try:
        return plan.take_next(ports)
    except RangeError as error:
        raise errors.internal_error(f"failed to allocate a nodePort: {error}") from None


def _plan_health_check(plan: PortPlan, spec: Spec, ports: PortSet) -> None:
    wanted = spec.get("healthCheckNodePort", 0)
    try:
        if wanted:
            plan.take(ports, wanted)
        else:
            plan.health_check = plan.take_next(ports)
    except RangeError as error:
        what = f"requested HealthCheck NodePort {wanted}" if wanted else "a HealthCheck NodePort 0"
        raise errors.internal_error(f"failed to allocate {what}: {error}") from None


def plan_update(spec: Spec, before: Spec, name: str, ports: PortSet) -> PortPlan:
    """Ports for a changed service: keep what it had, take what is new, give back the rest."""
    plan = PortPlan()
    old = node_ports(before)
    if has_node_ports(spec):
        _plan_changed_ports(plan, spec, old, name, ports)
    elif has_node_ports(before):
        plan.released += old
    if needs_health_check(spec) and not needs_health_check(before):
        _plan_health_check(plan, spec, ports)
    elif needs_health_check(before) and not needs_health_check(spec):
        plan.released.append(before.get("healthCheckNodePort", 0))
    return plan


def _plan_changed_ports(plan: PortPlan, spec: Spec, old: list[int], name: str, ports: PortSet) -> None:
    seen: set[tuple[str, int]] = set()
    asked: set[int] = set(old)
    for at, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort", 0)
        if not number and not allocates_node_ports(spec):
            continue
        if not number:
            number = plan.numbers[at] = _take_next(plan, ports)
        elif number not in asked:
            _take(plan, ports, name, at, number)
            asked.add(number)
        key = port.get("protocol", ""), number
        if key in seen:
            raise errors.generic(f"duplicate nodePort: {{{key[0]} {number}}}")
        seen.add(key)
    used = {number for _, number in seen}
    plan.released += [number for number in old if number not in used]


def ports_of(spec: Spec) -> list[int]:
    """All ports that a service holds."""
    health = [spec["healthCheckNodePort"]] if needs_health_check(spec) and spec.get("healthCheckNodePort") else []
    return node_ports(spec) + health
