"""The texts of raw values after a JSON merge patch.

A merge patch works on texts: members that it names come with the text they were sent as, all others keep theirs. What
was opened on the way is written anew, its keys sorted:

    stored  {"b":"\\u0041","c":[1.0]}     patch  {"a":{"y":1.50,"x":null},"c":[ 2 ]}
    merged  {"a":{"y":1.50},"b":"\\u0041","c":[2]}

So a patch that says the same with other escapes changes a raw value, as in kube-apiserver.
"""

from __future__ import annotations

from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

import orjson

from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.schema.raw import Place, Texts, Writing, compacted, shown_text, skip_space, values_at

_scan: Final = JSONDecoder().raw_decode
_NULL: Final = "null"


def merged(places: tuple[Place, ...], patch: bytes) -> Writing:
    """For a merge patch, which is a sound document; texts that say something else than the object are not used."""
    left_alone = compacted(places)

    def write(obj: dict[str, Any], stored: Texts) -> Texts:
        texts = left_alone(obj, stored)
        try:
            document = patch.decode("utf-8", "replace").strip(" \t\n\r")
            for place, value in values_at(obj, places):
                text = _text_at(place, document, stored.get(place))
                if text is not None and orjson.loads(text) == value:
                    texts[place] = text
        except RecursionError:
            return texts
        return texts

    return write


def _text_at(place: Place, patch: str, stored: bytes | None) -> bytes | None:
    """What becomes of a raw value; None where the patch says nothing of it."""
    known = None if stored is None else stored.decode()
    for step in place:
        members = _members(patch)
        if members is None:
            items = _items(patch)
            if items is None:
                return None
            patch, known = items[int(step)], None  # lists are replaced as a whole
        elif members.get(step, _NULL) == _NULL:
            return None
        else:
            patch = members[step]
    return shown_text((_pruned(patch) if known is None else _merged(known, patch)).encode())


def _merged(stored: str, patch: str) -> str:
    members = _members(stored)
    if members is None:
        return _pruned(patch)
    given = _members(patch)
    if given is None:
        return patch
    for name, text in given.items():
        if text == _NULL:
            members.pop(name, None)
        elif members.get(name, _NULL) == _NULL:
            members[name] = _pruned(text)
        else:
            members[name] = _merged(members[name], text)
    return _written(members)


def _pruned(text: str) -> str:
    """A new value: members that are null are left out, at any depth."""
    members = _members(text)
    if members is not None:
        return _written({name: _pruned(each) for name, each in members.items() if each != _NULL})
    items = _items(text)
    return text if items is None else f"[{','.join(map(_pruned, items))}]"


def _written(members: dict[str, str]) -> str:
    written = (f"{_key(name)}:{members[name]}" for name in sorted(members))
    return f"{{{','.join(written)}}}"


def _key(name: str) -> str:
    sound = name.encode("utf-8", "replace").decode()
    return escape_html(orjson.dumps(sound)).decode()


def _members(text: str) -> dict[str, str] | None:
    """The texts of the members of an object; of those with one name the last."""
    if not text.startswith("{"):
        return None
    found: dict[str, str] = {}
    at = skip_space(text, 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        at = skip_space(text, skip_space(text, at) + 1)
        end = _scan(text, at)[1]
        found[name] = text[at:end]
        at = _next(text, end)
    return found


def _items(text: str) -> list[str] | None:
    if not text.startswith("["):
        return None
    found: list[str] = []
    at = skip_space(text, 1)
    while text[at] != "]":
        end = _scan(text, at)[1]
        found.append(text[at:end])
        at = _next(text, end)
    return found


def _next(text: str, at: int) -> int:
    at = skip_space(text, at)
    return skip_space(text, at + 1) if text[at] == "," else at
