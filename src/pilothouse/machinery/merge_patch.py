"""JSON merge patch (RFC 7386) as kube-apiserver applies it.

``apply`` returns a new document that shares everything untouched with the given one and new values with the patch;
neither is changed. Nothing here recurses, so that depth cannot exhaust the stack.
"""

from __future__ import annotations

from typing import Any


class MergePatchError(ValueError):
    """A patch that is no JSON object; its message is what clients see."""


def apply(document: dict[str, Any], patch: Any) -> Any:
    """The document after the patch: null deletes, objects merge, everything else replaces."""
    if isinstance(patch, list):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        raise MergePatchError("Invalid JSON Patch")
    result = document.copy()
    pending = [(result, patch)]
    while pending:
        target, changes = pending.pop()
        for key, value in changes.items():
            if value is None:
                target.pop(key, None)
                continue
            current = target.get(key)
            if not isinstance(current, dict):
                target[key] = _without_nulls(value)
            elif isinstance(value, dict):
                target[key] = current.copy()
                pending.append((target[key], value))
            else:
                target[key] = value
    return result


def _without_nulls(value: Any) -> Any:
    """The value without null entries of its objects; nulls in lists stay."""
    if not isinstance(value, (dict, list)):
        return value
    holder = [value]
    pending: list[tuple[Any, Any]] = [(holder, 0)]
    while pending:
        parent, place = pending.pop()
        item = parent[place]
        if isinstance(item, dict):
            kept: Any = {key: inner for key, inner in item.items() if inner is not None}
            parent[place] = kept
            pending.extend((kept, key) for key, inner in kept.items() if isinstance(inner, (dict, list)))
        else:
            copied = item.copy()
            parent[place] = copied
            pending.extend((copied, at) for at, inner in enumerate(copied) if isinstance(inner, (dict, list)))
    return holder[0]
