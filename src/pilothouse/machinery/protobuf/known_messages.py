"""Messages of structs whose values come again and again, written once: the specs of pods.

Workloads make pods by the thousand from one template, and whoever writes the status of a pod writes its spec along. The
JSON text of such a value, which is quick to make, finds the message that was written for it. Specs of one template
differ in the name of the token's volume, which admission draws; it is blanked out of the text and put into the message
anew. That gives what writing would give: names of that form are as long as each other, need no escapes, and stand in
the message as they stand in the text. Where they might not (in a key of a map, whose place depends on it) nothing is
kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.machinery.names import TOKEN_VOLUME_PREFIX

REPEATED: Final = frozenset({"core.v1.PodSpec"})
"""The names of such structs."""
_MOST: Final = 256
_LARGEST: Final = 16 * 1024
_DRAWN_NAME: Final = re.compile(TOKEN_VOLUME_PREFIX.encode() + rb"[a-z0-9]{5}").search
_BLANK: Final = b"\0"  # which no JSON has
_is_in_key: Final = re.compile(rb'\0(?:[^"\\]++|\\.)*+":').search


class KnownMessages:
    """Writes the values of one struct, and remembers the latest: by their text, the pieces between drawn names."""

    __slots__ = ("_encode", "_known")

    def __init__(self, encode: Callable[[dict[str, Any]], bytes]) -> None:
        self._encode = encode
        self._known: dict[bytes, list[bytes]] = {}

    def __call__(self, value: dict[str, Any]) -> bytes:
        """The message of a value."""
        try:
            text = orjson.dumps(value)
        except orjson.JSONEncodeError:
            return self._encode(value)
        if len(text) > _LARGEST:
            return self._encode(value)
        drawn = _DRAWN_NAME(text)
        name = b"" if drawn is None else drawn[0]
        key = text.replace(name, _BLANK) if name else text
        pieces = self._known.get(key)
        if pieces is not None:
            return name.join(pieces)
        message = self._encode(value)
        pieces = message.split(name) if name else [message]
        if len(pieces) == 1 + key.count(_BLANK) and not _is_in_key(key):
            self._remember(key, pieces)
        return message

    def _remember(self, key: bytes, pieces: list[bytes]) -> None:
        # Emptied rather than trimmed: long objects are written in threads, and one may be looking.
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = pieces
