"""Fields where an empty list or map that the client wrote out means something else than none at all.

Objects are stored and served without empty lists and maps, so decoding leaves them out. At a few places the original
asks whether the client gave one: a pod with ``overhead: {}`` is refused, ``policies: []`` of an autoscaler asks for no
policies instead of the default ones. A strategy names these places; there the empty value stays with the object until
it has been checked, and is gone before it is stored. Field management never sees it.
"""

from __future__ import annotations

from typing import Any

Places = tuple[tuple[str, ...], ...]


def keep_explicit(given: Any, obj: dict[str, Any], places: Places) -> None:
    """Put empty values that stood in the body back into the decoded object."""
    for place in places:
        value = value_at(given, place)
        if value is not None and not value and value.__class__ in (list, dict):
            holder = value_at(obj, place[:-1])
            if isinstance(holder, dict):
                holder.setdefault(place[-1], value.__class__())


def take_explicit(obj: dict[str, Any], places: Places) -> list[tuple[tuple[str, ...], Any]]:
    """Take kept empty values out of the object; what was taken, and where."""
    taken = []
    for place in places:
        holder = value_at(obj, place[:-1])
        if isinstance(holder, dict) and holder.get(place[-1]) in ([], {}):
            taken.append((place, holder.pop(place[-1])))
    return taken


def put_explicit(obj: dict[str, Any], taken: list[tuple[tuple[str, ...], Any]]) -> None:
    """Put back what was taken out."""
    for place, value in taken:
        holder = value_at(obj, place[:-1])
        if isinstance(holder, dict):
            holder[place[-1]] = value


def value_at(value: Any, place: tuple[str, ...]) -> Any:
    """What stands at a place, None where nothing does."""
    for step in place:
        if value.__class__ is not dict:
            return None
        value = value.get(step)
    return value
