"""Endpoints in slices of a hundred: what changes is changed where it is, what is new fills up what is there.

The fewer slices are written the better, because everybody who watches reads each of them; so endpoints are moved only
where a slice would otherwise be left nearly empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pilothouse.machinery.objects import Object

MOST: Final = 100
_PART: Final = 50
"""What an endpoint or a port takes of JSON."""
Endpoint = dict[str, Any]


@dataclass(slots=True)
class Plan:
    """What is to be written."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


def identity(endpoint: Endpoint) -> tuple[Any, ...]:
    """What makes two endpoints the same one: its pod, or its addresses."""
    target = endpoint.get("targetRef") or {}
    return (target.get("uid") or "", *endpoint["addresses"])


def ports_key(address_type: str, ports: Sequence[dict[str, Any]] | None) -> str:
    """Slices hold endpoints of one family with the same ports."""
    encoded = sorted(orjson.dumps(port, option=orjson.OPT_SORT_KEYS).decode() for port in ports or ())
    return f"{address_type} {encoded}"


def weight_of_slices(slices: Iterable[Object]) -> int:
    """What packing them is as much work as, in bytes of usual JSON."""
    return _PART * sum(len(each.get("endpoints") or ()) + len(each.get("ports") or ()) for each in slices)


def pack(
    wanted: dict[str, list[Endpoint]],
    slices: Iterable[Object],
    make: Callable[[str, list[Endpoint]], Object],
    is_labelled: Callable[[Object], bool],
    relabel: Callable[[Object], Object],
) -> Plan:
    """Bring slices to hold exactly the wanted endpoints, by key of family and ports."""
    plan = Plan()
    by_key: dict[str, list[Object]] = {}
    for each in slices:
        by_key.setdefault(ports_key(each["addressType"], each.get("ports")), []).append(each)
    for key in {*by_key, *wanted}:
        _pack_one(key, wanted.get(key, []), by_key.get(key, []), plan, make, is_labelled, relabel)
    return plan


def _pack_one(
    key: str,
    wanted: list[Endpoint],
    slices: list[Object],
    plan: Plan,
    make: Callable[[str, list[Endpoint]], Object],
    is_labelled: Callable[[Object], bool],
    relabel: Callable[[Object], Object],
) -> None:
    left = {identity(each): each for each in wanted}
    kept: list[tuple[Object, list[Endpoint], bool]] = []
    for each in slices:
        known: list[Endpoint] = each.get("endpoints") or []
        now = [left.pop(identity(endpoint)) for endpoint in known if identity(endpoint) in left]
        kept.append((each, now, now != known))
    new = list(left.values())
    # Slices that are written anyway are filled first, the fullest of them first.
    kept.sort(key=lambda entry: (not entry[2], -len(entry[1])))
    filled: list[tuple[Object, list[Endpoint], bool]] = []
    for each, now, changed in kept:
        room = MOST - len(now)
        take = new[:room] if new and room > 0 and (changed or len(new) <= room) else []
        new = new[len(take) :]
        filled.append((each, [*now, *take], changed or bool(take)))
    for each, now, changed in filled:
        if not now:
            plan.delete.append(each)
        elif changed or not is_labelled(each):
            plan.update.append({**relabel(each), "endpoints": now})
    while new:
        plan.create.append(make(key, new[:MOST]))
        new = new[MOST:]
