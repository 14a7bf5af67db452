"""Fields and resources of features that are off.

``gated.txt`` has a line for fields that come and go together: their gate, then the fields by type and path. A field of
a feature that is off is dropped as if it were unknown, unless the stored object uses one of the same line. ``!`` drops
the struct around the field as well when nothing else is in it. A name that begins with ``/`` is a resource, which is
served only with its gate.

From the lines that are off and the schema of a kind, ``find_gated`` makes a map of the places to look at. It is None
where there are none, and small where there are: an object without any such field costs a few lookups.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

from pilothouse.apis import catalogue, types
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import Emptied
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Struct, Type


class Rule(NamedTuple):
    """Where a gated field is, from the type that the rule is written for."""

    path: tuple[str, ...]
    line: int
    prunes: bool


class Places:
    """What to look at in a struct, or in each item of a list or map."""

    __slots__ = ("each", "fields", "names")

    def __init__(self) -> None:
        self.fields: dict[str, tuple[Rule | None, Places | None, bool]] = {}
        """By a field's name the rule it falls under, what is gated below it, whether it is written even when empty."""
        self.names: set[str] = set()
        """Those of all these fields."""
        self.each: Places | None = None


class Found(NamedTuple):
    """A field of a feature that is off."""

    rule: Rule
    holder: Object
    name: str
    always: bool
    around: tuple[Object, str] | None


@cache
def _lines() -> list[tuple[str, list[str]]]:
    text = catalogue.read("gated.txt")
    return [(gate, places) for gate, *places in (line.split() for line in text.splitlines())]


def is_served(group: str, resource: str, enabled: frozenset[str]) -> bool:
    """Whether the gate of a resource, if it has one, is on."""
    name = f"/{group}/{resource}"
    return all(gate in enabled for gate, places in _lines() if name in places)


@lru_cache(maxsize=8)
def _rules(enabled: frozenset[str]) -> dict[str, list[Rule]]:
    """The rules in force by the type they are written for."""
    rules: dict[str, list[Rule]] = {}
    for number, (gate, places) in enumerate(_lines()):
        if gate in enabled:
            continue
        for place in places:
            if not place.startswith("/"):
                package, version, name, *path = place.removesuffix("!").split(".")
                rule = Rule(tuple(path), number, place.endswith("!"))
                rules.setdefault(f"{package}.{version}.{name}", []).append(rule)
    return rules


@lru_cache(maxsize=1024)
def find_gated(type_name: str, enabled: frozenset[str]) -> Places | None:
    """What to look at in objects of a type; None where everything in them is on."""
    rules = _rules(enabled)
    return _places(types.struct(type_name), [], rules, frozenset()) if rules else None


def _places(kind: Type, above: list[Rule], rules: dict[str, list[Rule]], within: frozenset[str]) -> Places | None:
    places = Places()
    if isinstance(kind, ListOf | MapOf):
        item = kind.item if isinstance(kind, ListOf) else kind.value
        places.each = _places(item, _below(above, "*"), rules, within)
        return places if places.each is not None else None
    if not isinstance(kind, Struct) or kind.name in within:
        return None
    here = above + rules.get(kind.name, [])
    for name, field in kind.fields.items():
        rule = next((rule for rule in here if rule.path == (name,)), None)
        below = _places(field.type, _below(here, name), rules, within | {kind.name})
        if rule is not None or below is not None:
            places.fields[name] = rule, below, _is_always_written(field)
            places.names.add(name)
    return places if places.fields else None


def _below(rules: list[Rule], step: str) -> list[Rule]:
    return [rule._replace(path=rule.path[1:]) for rule in rules if len(rule.path) > 1 and rule.path[0] == step]


def _is_always_written(field: Field) -> bool:
    return not (field.omit_empty or field.omit_zero)


def drop_gated(places: Places, obj: Object, old: Object | None) -> bool:
    """Drop fields of features that are off and that the stored object does not use; whether there were any."""
    if isinstance(obj, Emptied):
        _forget_gated(places, obj)
    found: list[Found] = []
    _look(places, obj, None, found, old)
    if not found:
        return False
    used: list[Found] = []
    if old is not None:
        _look(places, old, None, used)
    kept = {each.rule.line for each in used}
    dropped = [each for each in found if each.rule.line not in kept]
    for each in dropped:
        _drop(each)
    return bool(dropped)


def _look(
    places: Places, value: Any, around: tuple[Object, str] | None, found: list[Found], old: Object | None = None
) -> None:
    """Find fields of features that are off; not in what is as in the ``old`` object, which uses them then."""
    each = places.each
    if each is not None:
        for item in value if value.__class__ is list else value.values():
            _look(each, item, None, found)
        return
    fields = places.fields
    for name in filter(places.names.__contains__, value):  # most objects have few of dozens
        item = value[name]
        if item is None or (old is not None and item == old.get(name)):
            continue
        rule, below, always = fields[name]
        if rule is not None and item != []:
            found.append(Found(rule, value, name, always, around))
        if below is None:
            continue
        each = below.each
        if each is None:
            if not below.names.isdisjoint(item):
                _look(below, item, (value, name), found)
        elif each.each is None and item.__class__ is list:  # without a call for items that have nothing of interest
            names = each.names
            for one in item:
                if not names.isdisjoint(one):
                    _look(each, one, None, found)
        else:
            _look(below, item, (value, name), found)


def _forget_gated(places: Places, value: Any) -> None:
    """Drop the notes that such a field was given as empty."""
    if places.each is not None:
        for item in value if isinstance(value, list) else value.values():
            _forget_gated(places.each, item)
        return
    for name, (rule, below, _) in places.fields.items():
        item = value.get(name)
        if item is not None and below is not None:
            _forget_gated(below, item)
        elif item is None and rule is not None and isinstance(value, Emptied):
            value.empty.pop(name, None)


def _drop(found: Found) -> None:
    if found.always:
        found.holder[found.name] = None
        return
    found.holder.pop(found.name, None)
    if found.rule.prunes and found.around is not None and not found.holder:
        found.around[0].pop(found.around[1], None)
