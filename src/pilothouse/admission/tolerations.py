"""Joining tolerations: what another one covers is left out, of equal ones the first stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Toleration = dict[str, Any]


def merge_tolerations(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both lists without what is redundant."""
    everything = [*first, *second]
    merged: list[Toleration] = []
    for position, each in enumerate(everything):
        if any(covers(kept, each) for kept in merged):
            continue
        if any(later != each and covers(later, each) for later in everything[position + 1 :]):
            continue
        merged.append(each)
    return merged


def within(tolerations: Sequence[Toleration], allowed: Sequence[Toleration]) -> bool:
    """Whether each toleration is covered by an allowed one; an empty list allows everything."""
    if not allowed or not tolerations:
        return True
    return all(any(covers(wide, each) for wide in allowed) for each in tolerations)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether one toleration tolerates whatever the other does."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    effect = wide.get("effect", "")
    if effect and narrow.get("effect", "") != effect:
        return False
    seconds = wide.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None:
        given = narrow.get("tolerationSeconds")
        if given is None or given > seconds:
            return False
    if operator in ("Equal", ""):
        return bool(narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
    return bool(operator == "Exists")
