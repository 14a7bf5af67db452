"""The feature gates that the user switched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def read_gates(entries: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """The gates by name; the text was checked with the options."""
    gates = {}
    for item in (*entries.get("", ()), *entries.get("kube", ())):
        name, _, text = item.partition("=")
        gates[name.strip()] = text.strip().lower() in ("true", "t", "1")
    return gates
