"""Feature gates: which there are in this release, and which are on.

``gates.txt`` has a line a gate: name, stage, default, whether it is locked to that, and the gates it needs. What the
user switched is laid over the defaults once, when the server is built; from then on a set of names says what is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from pilothouse.apis import catalogue

ALLOW_PRIVILEGED: Final = "--allow-privileged"
"""No feature gate, but a switch of the whole cluster that rules ask for in the same way: member of the set or not."""
ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"
_STAGES: Final = {ALL_ALPHA: "alpha", ALL_BETA: "beta"}


class Gate(NamedTuple):
    """One feature. ``stage`` is alpha, beta, ga or deprecated."""

    name: str
    stage: str
    on: bool
    locked: bool
    needs: tuple[str, ...]


@cache
def known_gates() -> dict[str, Gate]:
    """All gates by name."""
    text = catalogue.read("gates.txt")
    return {gate.name: gate for gate in map(_gate, text.splitlines())}


def _gate(line: str) -> Gate:
    name, stage, default, *flags = line.split()
    needs = next((flag[len("needs=") :] for flag in flags if flag.startswith("needs=")), "")
    return Gate(name, stage, default == "on", "locked" in flags, tuple(needs.split(",")) if needs else ())


@cache
def default_gates() -> frozenset[str]:
    """The names of the gates that are on unless switched."""
    return frozenset(gate.name for gate in known_gates().values() if gate.on)


def enabled_gates(switched: Mapping[str, bool]) -> frozenset[str]:
    """The names of the gates that are on. A gate that is switched itself does not follow its stage."""
    if not switched:
        return default_gates()
    by_stage = {_STAGES[name]: value for name, value in switched.items() if name in _STAGES}
    return frozenset(
        gate.name
        for gate in known_gates().values()
        if switched.get(gate.name, gate.on if gate.locked else by_stage.get(gate.stage, gate.on))
    )


def check_switched(switched: Mapping[str, bool]) -> list[str]:
    """What is wrong with a user's choice: an unknown gate ends the search, broken dependencies come last."""
    errs: list[str] = []
    for name, value in switched.items():
        if name in _STAGES:
            continue
        gate = known_gates().get(name)
        if gate is None:
            return [*errs, f"unrecognized feature gate: {name}"]
        if gate.locked and value != gate.on:
            errs.append(f"cannot set feature gate {name} to {_word(value)}, feature is locked to {_word(gate.on)}")
    return errs or _broken(enabled_gates(switched))


def _broken(enabled: frozenset[str]) -> list[str]:
    errs = []
    for gate in known_gates().values():
        missing = [name for name in gate.needs if name not in enabled]
        if missing and gate.name in enabled:
            errs.append(f"{gate.name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    return errs


def _word(value: bool) -> str:
    return "true" if value else "false"
