"""Raw JSON values keep the text that they were sent as.

Data that only its owner understands (``ControllerRevision.data``, parameters of device drivers) is text to the server:
two texts of the same value are different data, and so a change. A client that sends ``{"a": 1}`` and later patches
anything else has changed it, because a patched object is written anew, as ``{"a":1}``. The text stands in the stored
object as it came, with nothing but its line breaks taken out. Kinds without such fields have no places and pay nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

import orjson

from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.schema.types import ListOf, MapOf, Special, Struct, Type

Place = tuple[str, ...]
Texts = dict[Place, bytes]
"""The text at each place that has one; list items by their position."""
Writing = Callable[[dict[str, Any], Texts], Texts]
"""How the raw values of a wanted object are written, given the object and the texts that are stored."""

ANY: Final = "*"
_scan: Final = JSONDecoder().raw_decode
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING_OR_SPACE: Final = re.compile(rb'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]++')


def raw_places(struct: Struct) -> tuple[Place, ...]:
    """Where the type has raw values; ``*`` stands for any item of a list or map."""
    places: tuple[Place, ...] | None = struct.derived.get("raw places")
    if places is None:
        places = struct.derived["raw places"] = tuple(_find(struct, frozenset()))
    return places


def _find(kind: Type, above: frozenset[str]) -> Iterator[Place]:
    if isinstance(kind, Special) and kind.kind == "RawExtension":
        yield ()
    elif isinstance(kind, ListOf | MapOf):
        below = kind.item if isinstance(kind, ListOf) else kind.value
        yield from ((ANY, *rest) for rest in _find(below, above))
    elif isinstance(kind, Struct) and kind.name not in above:
        for name, field in kind.fields.items():
            yield from ((name, *rest) for rest in _find(field.type, above | {kind.name}))


def read_texts(data: bytes, places: tuple[Place, ...]) -> Texts:
    """The texts in a sound JSON document; none where it is too deep to look at."""
    found: Texts = {}
    if places:
        text = data.decode("utf-8", "replace")
        try:
            _walk(text, skip_space(text, 0), places, (), found)
        except RecursionError:
            return {}
    return found


def skip_space(text: str, at: int) -> int:
    """Where the next thing in a JSON document begins."""
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _walk(text: str, at: int, places: tuple[Place, ...], here: Place, found: Texts) -> int:
    """Look at the value that begins here; where it ends."""
    if () in places:
        end = _scan(text, at)[1]
        found[here] = escape_html(text[at:end].replace("\n", " ").replace("\r", " ").encode())
        return end
    if not places or text[at] not in "{[":
        return _scan(text, at)[1]
    close = "}" if text[at] == "{" else "]"
    at, position = skip_space(text, at + 1), 0
    while text[at] != close:
        step = str(position)
        if close == "}":
            step, at = scanstring(text, at + 1)
            at = skip_space(text, skip_space(text, at) + 1)
        below = tuple(place[1:] for place in places if place[0] in (step, ANY))
        at = skip_space(text, _walk(text, at, below, (*here, step), found))
        if text[at] == ",":
            at = skip_space(text, at + 1)
        position += 1
    return at + 1


def values_at(value: Any, places: tuple[Place, ...], here: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The raw values of an object, each with its place."""
    if () in places:
        yield here, value
    elif isinstance(value, dict | list) and places:
        items = value.items() if isinstance(value, dict) else ((str(at), item) for at, item in enumerate(value))
        for step, item in items:
            below = tuple(place[1:] for place in places if place[0] in (step, ANY))
            if below:
                yield from values_at(item, below, (*here, step))


def as_sent(texts: Texts) -> Writing:
    """For a body: the texts are the body's own."""
    return lambda obj, stored: texts


def as_stored(obj: dict[str, Any], stored: Texts) -> Texts:
    """For what is left alone: the texts stay."""
    return stored


def written_anew(places: tuple[Place, ...]) -> Writing:
    """For what comes from a map of values: compact, keys sorted."""

    def write(obj: dict[str, Any], stored: Texts) -> Texts:
        return {
            place: escape_html(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            for place, value in values_at(obj, places)
        }

    return write


def compacted(places: tuple[Place, ...]) -> Writing:
    """For a patch of the document: what it left alone loses its white space only."""

    def write(obj: dict[str, Any], stored: Texts) -> Texts:
        texts = {}
        for place, value in values_at(obj, places):
            known = stored.get(place)
            if known is not None and _says(known, value):
                texts[place] = _STRING_OR_SPACE.sub(rb"\1", known)
            else:
                texts[place] = escape_html(orjson.dumps(value))
        return texts

    return write


def shown_text(text: bytes) -> bytes:
    """A raw value as Go writes it into JSON: as it was sent, but without blanks and with its HTML escaped."""
    return escape_html(_STRING_OR_SPACE.sub(rb"\1", text))


def sorted_text(text: bytes) -> bytes:
    """A raw value that went through a map of values: compact, keys sorted."""
    return escape_html(orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS))


def embed(obj: dict[str, Any], places: tuple[Place, ...], *sources: Texts) -> dict[str, Any]:
    """The object ready for encoding, each raw value as the text of the first source that has it."""
    for place, value in list(values_at(obj, places)):
        for texts in sources:
            text = texts.get(place)
            if text is not None and _says(text, value):
                obj = _replaced(obj, place, orjson.Fragment(text))
                break
    return obj


def _says(text: bytes, value: Any) -> bool:
    """Whether a text is that of a value; one with half a surrogate pair is not read, and the value stands for it."""
    try:
        return bool(orjson.loads(text) == value)
    except orjson.JSONDecodeError:
        return False


def _replaced(value: Any, place: Place, part: Any) -> Any:
    """A copy of the containers that lead to the place, with something else there."""
    if not place:
        return part
    if isinstance(value, dict):
        return {**value, place[0]: _replaced(value[place[0]], place[1:], part)}
    at = int(place[0])
    return [*value[:at], _replaced(value[at], place[1:], part), *value[at + 1 :]]
