"""Expressions that select devices: what ``device`` is to them, and what they may cost.

Attributes and capacities are maps by domain of maps by name. What an attribute holds is known only when an expression
runs, so an expression may give that too where a bool is wanted.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from pilothouse.cel.declarations import Library, PlainStruct, Structs
from pilothouse.cel.environment import Environment
from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import libraries
from pilothouse.cel.library.quantities import QUANTITY_TYPE
from pilothouse.cel.macros import BINDINGS
from pilothouse.cel.planning import InstantiationError
from pilothouse.cel.policies import PolicyError
from pilothouse.cel.ranges import Range
from pilothouse.cel.types import ANY, BOOL, STRING, map_of, struct

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
