"""Laying a configuration over a live value.

What the configuration does not mention stays. Atomic values are replaced; null keeps a map or a keyed list as it is and
replaces anything else. Items of keyed lists and sets are merged with their namesakes; the result has what is applied in
the order it is applied, and the rest of the live items where they were between those:

    live a b c d, applied c a x:  a is awaited later, b stays, c, then d stays, a, x   ->   b c d a x
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.structured.descriptions import step_of
from pilothouse.machinery.structured.shapes import ListShape, MapShape, Shape

ABSENT: Any = object()
"""Stands for a value that is not there, which null is."""


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """The live value with the applied one laid over it. Parts are shared with both."""
    merged = _merge(shape, live, applied)
    return None if merged is ABSENT else merged


def _merge(shape: Shape, live: Any, applied: Any) -> Any:
    if applied is ABSENT or applied is live:
        return live
    if live is ABSENT:
        return applied
    if shape.map is not None and (applied.__class__ is dict or applied is None):
        return _merge_maps(shape.map, live, applied)
    if shape.items is not None and (applied.__class__ is list or (applied is None and not shape.scalar)):
        return _merge_lists(shape.items, live, applied)
    return applied


def _merge_maps(shape: MapShape, live: Any, applied: dict[str, Any] | None) -> Any:
    if shape.atomic or live.__class__ is not dict or not live:
        return applied
    if not applied:
        return live
    out = dict(live)
    for key, value in applied.items():
        if key in out:
            inner = shape.field(key)
            merged = value if inner is None else _merge(inner, out[key], value)
            if merged is ABSENT:
                del out[key]
            else:
                out[key] = merged
        else:
            out[key] = value
    return out


def _merge_lists(items: ListShape, live: Any, applied: list[Any] | None) -> Any:
    if items.atomic or live.__class__ is not list or not live:
        return applied
    if not applied:
        return live
    return _Weave(items, live, applied).run()


class _Weave:
    """One walk over two keyed lists at once."""

    def __init__(self, items: ListShape, live: list[Any], applied: list[Any]) -> None:
        self.items = items
        self.live = live
        self.live_steps = [step_of(items, item) for item in live]
        self.applied_steps = [step_of(items, item) for item in applied]
        self.applied_items = dict(zip(self.applied_steps, applied, strict=True))
        self.live_items: dict[str, Any] = {}
        for step, item in zip(self.live_steps, live, strict=True):
            # Items under one key cannot be merged with the applied one: they are replaced by it.
            self.live_items[step] = None if step in self.live_items else item
        self.shared = [step for step in self.applied_steps if step in self.live_items]
        self.next_shared = 0
        self.done: set[str] = set()
        self.out: list[Any] = []

    def run(self) -> list[Any]:
        left = right = 0
        live_steps, applied_steps = self.live_steps, self.applied_steps
        while left < len(live_steps) or right < len(applied_steps):
            if left < len(live_steps) and right < len(applied_steps):
                step = live_steps[left]
                if step == applied_steps[right]:
                    self._take(step)
                    self.next_shared += 1
                    left, right = left + 1, right + 1
                    continue
                if step in self.applied_items and self._awaits_other(step):
                    left += 1
                    continue
            if left < len(live_steps):
                step = live_steps[left]
                if step not in self.applied_items:
                    self.out.append(self.live[left])
                    left += 1
                    continue
                if step in self.done:
                    left += 1
            if right < len(applied_steps):
                step = applied_steps[right]
                self._take(step)
                right += 1
                if self.next_shared < len(self.shared) and self.shared[self.next_shared] == step:
                    self.next_shared += 1
        return self.out

    def _awaits_other(self, step: str) -> bool:
        """Whether another item that both lists have comes before this one."""
        return self.next_shared < len(self.shared) and self.shared[self.next_shared] != step

    def _take(self, step: str) -> None:
        self.done.add(step)
        merged = _merge(self.items.item, self.live_items.get(step, ABSENT), self.applied_items[step])
        if merged is not ABSENT:
            self.out.append(merged)
