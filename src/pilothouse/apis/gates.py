"""Feature gates: which there are in this release, and which are on.

``gates.txt`` has a line a gate: name, stage, default, whether it is locked to that, and the gates it needs;
``gate_history.txt`` the same of those that were different in a version that can be emulated. What the
user switched is laid over the defaults once, when the server is built; from then on a set of names says what is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from pilothouse.apis import catalogue
from pilothouse.apis.emulation import PRESENT, Emulation, parse_version, version_text

ALLOW_PRIVILEGED: Final = "--allow-privileged"
"""No feature gate, but a switch of the whole cluster that rules ask for in the same way: member of the set or not."""
ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"
PRE_ALPHA: Final = "pre-alpha"
"""The stage of a gate that the emulated version does not have."""
STAGES: Final = {ALL_ALPHA: "alpha", ALL_BETA: "beta"}
"""The gates that switch all others of a stage."""


class Gate(NamedTuple):
    """One feature. ``stage`` is alpha, beta, ga or deprecated, or that it is not there yet."""

    name: str
    stage: str
    on: bool
    locked: bool
    needs: tuple[str, ...]


@cache
def known_gates(emulation: Emulation = PRESENT) -> dict[str, Gate]:
    """All gates by name, as they are in the version that is emulated."""
    gates = {gate.name: gate for gate in map(_gate, catalogue.read("gates.txt").splitlines())}
    return gates if emulation == PRESENT else gates | _older_gates(gates, emulation)


def _older_gates(gates: Mapping[str, Gate], emulation: Emulation) -> dict[str, Gate]:
    """Those that changed since; one that was not there yet is off, and cannot be switched."""
    older: dict[str, Gate] = {}
    for line in catalogue.read("gate_history.txt").splitlines():
        name, since, *words = line.split()
        older.setdefault(name, Gate(name, PRE_ALPHA, False, False, gates[name].needs))
        needed = next((word.partition("=")[2] for word in words if word.startswith("compatible=")), "")
        if parse_version(since) <= emulation.version and (not needed or parse_version(needed) <= emulation.compatible):
            older[name] = _gate(f"{name} {' '.join(words)}")._replace(needs=gates[name].needs)
    return older


def _gate(line: str) -> Gate:
    name, stage, default, *flags = line.split()
    needs = next((flag[len("needs=") :] for flag in flags if flag.startswith("needs=")), "")
    return Gate(name, stage, default == "on", "locked" in flags, tuple(needs.split(",")) if needs else ())


@cache
def default_gates(emulation: Emulation = PRESENT) -> frozenset[str]:
    """The names of the gates that are on unless switched."""
    return frozenset(gate.name for gate in known_gates(emulation).values() if gate.on)


def enabled_gates(switched: Mapping[str, bool], emulation: Emulation = PRESENT) -> frozenset[str]:
    """The names of the gates that are on. A gate that is switched itself does not follow its stage."""
    if not switched:
        return default_gates(emulation)
    by_stage = {STAGES[name]: value for name, value in switched.items() if name in STAGES}
    return frozenset(name for name in STAGES if switched.get(name)).union(
        gate.name
        for gate in known_gates(emulation).values()
        if switched.get(gate.name, gate.on if gate.locked else by_stage.get(gate.stage, gate.on))
    )


def check_switched(switched: Mapping[str, bool], emulation: Emulation = PRESENT) -> list[str]:
    """What is wrong with a user's choice: an unknown gate ends the search, broken dependencies come last."""
    errs: list[str] = []
    for name, value in switched.items():
        if name in STAGES:
            continue
        gate = known_gates(emulation).get(name)
        if gate is None:
            return [*errs, f"unrecognized feature gate: {name}"]
        if gate.locked and value != gate.on:
            errs.append(f"cannot set feature gate {name} to {_word(value)}, feature is locked to {_word(gate.on)}")
        elif gate.stage == PRE_ALPHA:
            errs.append(
                f"cannot set feature gate {name} to {_word(value)}, feature is PreAlpha at emulated version "
                f"{emulation.text()}, min compatibility version {version_text(emulation.compatible)}"
            )
    return errs or _broken(enabled_gates(switched, emulation), emulation)


def _broken(enabled: frozenset[str], emulation: Emulation) -> list[str]:
    errs = []
    for gate in known_gates(emulation).values():
        missing = [name for name in gate.needs if name not in enabled]
        if missing and gate.name in enabled:
            errs.append(f"{gate.name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    return errs


def _word(value: bool) -> str:
    return "true" if value else "false"
