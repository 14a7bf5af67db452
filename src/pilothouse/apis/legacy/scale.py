"""Scales of the first versions, which show the selector as a map where it is one, and as text under another name."""

from __future__ import annotations

from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object


def to_scale(obj: Object) -> Object:
    """As autoscaling/v1 has it."""
    status = dict(obj.get("status") or {})
    pairs, text = status.pop("selector", None), status.pop("targetSelector", "")
    if not text and pairs:
        text = str(labels.from_labels(pairs))
    return {**obj, "status": {**status, "selector": text} if text else status}


def from_scale(obj: Object) -> Object:
    """As extensions/v1beta1, apps/v1beta1 and apps/v1beta2 have it."""
    status = dict(obj.get("status") or {})
    text = status.pop("selector", "")
    if text:
        pairs = as_pairs(text)
        status = {**status, **({"selector": pairs} if pairs else {}), "targetSelector": text}
    return {**obj, "status": status}


def as_pairs(text: str) -> dict[str, str] | None:
    """A selector of nothing but equalities as a map; None for any other."""
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    plain = all(part.count("=") == 1 and "!" not in part for part in text.split(","))
    return pairs if plain and "(" not in text else None
