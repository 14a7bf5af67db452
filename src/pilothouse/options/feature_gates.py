"""The value of ``--feature-gates``: which features the user switched, and whether that makes sense."""

from __future__ import annotations

from pilothouse.apis.emulation import PRESENT, Emulation
from pilothouse.apis.gates import check_switched, default_gates, enabled_gates
from pilothouse.options.go_numbers import ValueRefused, parse_bool
from pilothouse.options.kinds import Multimap


def check_gates(entries: Multimap, emulation: Emulation = PRESENT) -> list[str]:
    """What is wrong with the flag."""
    if "" in entries and "kube" in entries:
        return ["set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"]
    for component in entries:
        if component not in ("", "kube"):
            return [f"component not registered: {component}"]
    try:
        return check_switched(read_gates(entries), emulation)
    except ValueRefused as refusal:
        return [str(refusal)]


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
    """Whether a gate is on; a flag that cannot be read leaves the defaults."""
    try:
        return name in enabled_gates(read_gates(entries))
    except ValueRefused:
        return name in default_gates()
