"""Expressions that select devices: what ``device`` is to them, what they may cost, and what they say of a device.

Attributes and capacities are maps by domain of maps by name. What an attribute holds is known only when an expression
runs, so an expression may give that too where a bool is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from pilothouse.cel.declarations import Library, PlainStruct, Structs
from pilothouse.cel.environment import Environment, Program
from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import libraries
from pilothouse.cel.library.quantities import QUANTITY_TYPE, QuantityValue
from pilothouse.cel.library.versions import parse_semver
from pilothouse.cel.macros import BINDINGS
from pilothouse.cel.planning import InstantiationError
from pilothouse.cel.policies import PolicyError
from pilothouse.cel.ranges import Range
from pilothouse.cel.types import ANY, BOOL, STRING, map_of, struct
from pilothouse.cel.values import EvaluationError, type_name
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

COST_LIMIT: Final = 1_000_000
_DEVICE: Final = PlainStruct(
    struct("kubernetes.DRADevice"),
    {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY_TYPE)),
    },
)
_DOMAIN, _NAME, _ENTRIES, _ATTRIBUTE, _DRIVER = 63, 32, 32, 64, 63
_STEPS: Final[dict[tuple[str, ...], int]] = {
    ("device",): 0,
    ("device", "driver"): _DRIVER,
    ("device", "allowMultipleAllocations"): 1,
} | {
    ("device", part, *below): size
    for part, value in (("attributes", _ATTRIBUTE), ("capacity", 0))
    for below, size in (
        ((), _ENTRIES),
        (("@keys",), _DOMAIN),
        (("@values",), _ENTRIES),
        (("@values", "@keys"), _NAME),
        (("@values", "@values"), value),
    )
}


def size_of(path: tuple[str, ...]) -> Range | None:
    """How large what stands at a path can be, None where that is not known."""
    known = _STEPS.get(path)
    if known is None and path[:3] == ("device", "attributes", "@values") and len(path) == 4:
        known = _ATTRIBUTE
    return None if known is None else (0, known)


@cache
def device_environment() -> Environment:
    """What selectors may use."""
    chosen = (*libraries(), Library(macros=BINDINGS))
    return Environment({"device": _DEVICE.type}, chosen, Structs({_DEVICE.type.name: _DEVICE}))


def selector_cost(text: str) -> float:
    """The most that a selector can cost; ``PolicyError`` where it cannot be used."""
    try:
        program = device_environment().compile(text)
    except CompileError as error:
        raise PolicyError(f"compilation failed: {error}") from None
    if program.type not in (BOOL, ANY):
        raise PolicyError(f"must evaluate to bool or the unknown type, not {program.type}")
    try:
        program.plan()
    except InstantiationError as error:
        raise PolicyError(f"program instantiation failed: {error}", internal=True) from None
    return program.estimate(size_of)[1]


class _Domains(dict[str, dict[str, Any]]):
    """Maps by domain: a domain of which a device has nothing is an empty one."""

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


@lru_cache(maxsize=1024)
def compile_selector(text: str) -> Program:
    """A selector, ready to be asked about devices; ``CompileError`` where it cannot be."""
    return device_environment().compile(text)


def device_value(driver: str, device: Object) -> Object:
    """What ``device`` is to a selector: a device of a slice of this driver."""
    attributes = {name: _attribute(value) for name, value in (device.get("attributes") or {}).items()}
    capacity = {
        name: QuantityValue(quantity.parse(str(value["value"])))
        for name, value in (device.get("capacity") or {}).items()
    }
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
        "attributes": _by_domain(driver, attributes),
        "capacity": _by_domain(driver, capacity),
    }


def _by_domain(driver: str, values: Mapping[str, Any]) -> _Domains:
    domains = _Domains()
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _attribute(attribute: Object) -> Any:
    for field in ("int", "bool", "string"):
        if field in attribute:
            return attribute[field]
    if "version" in attribute:
        return parse_semver(attribute["version"])
    raise EvaluationError("unsupported attribute value")


def is_selected(text: str, device: Object, spend: Callable[[int], object] = lambda cost: None) -> bool:
    """Whether a selector means a device, as ``device_value`` gives it; ``EvaluationError`` where it cannot tell.

    ``spend`` hears what that has cost.
    """
    value, cost = compile_selector(text).evaluate({"device": device}, COST_LIMIT)
    spend(cost)
    if not isinstance(value, bool):
        raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")
    return value
