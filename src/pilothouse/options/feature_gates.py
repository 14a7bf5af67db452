"""The value of ``--feature-gates``: which features the user switched, and whether the text makes sense.

Only the gates that other flags' rules ask about are known by name here; any other gate is accepted.
"""

from __future__ import annotations

from pilothouse.options.go_numbers import ValueRefused, parse_bool
from pilothouse.options.kinds import Multimap

DEFAULTS = {
    "ExternalServiceAccountTokenSigner": True,
    "LoggingAlphaOptions": False,
    "LoggingBetaOptions": True,
    "RemoteRequestHeaderUID": True,
    "UnknownVersionInteroperabilityProxy": True,
}
_LOCKED = frozenset({"ExternalServiceAccountTokenSigner"})


def check_gates(entries: Multimap) -> list[str]:
    """What is wrong with the flag, the first fault only: a later one may follow from it."""
    if "" in entries and "kube" in entries:
        return ["set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"]
    for component in entries:
        if component not in ("", "kube"):
            return [f"component not registered: {component}"]
    try:
        gates = read_gates(entries)
    except ValueRefused as refusal:
        return [str(refusal)]
    return [
        f"cannot set feature gate {name} to {_word(value)}, feature is locked to {_word(DEFAULTS[name])}"
        for name, value in gates.items()
        if name in _LOCKED and value != DEFAULTS[name]
    ]


def read_gates(entries: Multimap) -> dict[str, bool]:
    """The gates of this server that the flag switches."""
    gates: dict[str, bool] = {}
    for item in entries.get("", ()) + entries.get("kube", ()):
        name, equals, text = item.partition("=")
        name, text = name.strip(), text.strip()
        if not name and not equals:
            continue
        if not equals:
            raise ValueRefused(f"missing bool value for {name}")
        try:
            gates[name] = parse_bool(text)
        except ValueRefused as refusal:
            raise ValueRefused(f"invalid value of {name}={text}, err: {refusal}") from None
    return gates


def gate_enabled(entries: Multimap, name: str) -> bool:
    """Whether a known gate is on; a flag that cannot be read leaves the default."""
    try:
        gates = read_gates(entries)
    except ValueRefused:
        return DEFAULTS[name]
    if name not in gates and not DEFAULTS[name] and name.endswith("AlphaOptions"):
        return gates.get("AllAlpha", False)
    return gates.get(name, DEFAULTS[name])


def _word(value: bool) -> str:
    return "true" if value else "false"
