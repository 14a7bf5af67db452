"""Messages of structs whose values come again and again, written once: the specs of pods.

Workloads make pods by the thousand from one template, and whoever writes the status of a pod writes its spec along. The
JSON text of such a value, which is quick to make, finds the message that was written for it. Specs of one template
differ in their node and in the name of the token's volume, which admission draws. Both are blanked out of the text and
put into the message anew, which gives what writing would give: the node is a field of its own, and drawn names are as
long as each other, need no escapes, and stand in the message as they stand in the text. Where they might not (in a key
of a map, whose place depends on it) nothing is kept.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.machinery.names import TOKEN_VOLUME_PREFIX
from pilothouse.machinery.protobuf.wire import BYTES, delimited, encode_tag

REPEATED: Final = frozenset({"core.v1.PodSpec"})
"""The names of such structs."""
_NODE: Final = "nodeName"
_NODE_TAG: Final = encode_tag(10, BYTES)
_MARK: Final = secrets.token_hex(16)
"""Where the node goes; nobody can guess what it is."""
_MARKED: Final = delimited(_NODE_TAG, _MARK.encode())
_MOST: Final = 256
_LARGEST: Final = 16 * 1024
_DRAWN_NAME: Final = re.compile(TOKEN_VOLUME_PREFIX.encode() + rb"[a-z0-9]{5}").search
_BLANK: Final = b"\0"  # which no JSON has
_is_in_key: Final = re.compile(rb'\0(?:[^"\\]++|\\.)*+":').search


class KnownMessages:
    """Writes the values of one struct, and remembers the latest.

    By their text it knows the pieces between drawn names, those before the node and those behind it.
    """

    __slots__ = ("_encode", "_known")

    def __init__(self, encode: Callable[[dict[str, Any]], bytes]) -> None:
        self._encode = encode
        self._known: dict[bytes, tuple[list[bytes], list[bytes]]] = {}

    def __call__(self, value: dict[str, Any]) -> bytes:
        """The message of a value."""
        marked = {**value, _NODE: _MARK}
        try:
            text = orjson.dumps(marked)
        except orjson.JSONEncodeError:
            return self._encode(value)
        if len(text) > _LARGEST:
            return self._encode(value)
        drawn = _DRAWN_NAME(text)
        name = b"" if drawn is None else drawn[0]
        key = text.replace(name, _BLANK) if name else text
        pieces = self._known.get(key) or self._write(key, name, marked)
        node = delimited(_NODE_TAG, (value.get(_NODE) or "").encode())
        return b"%b%b%b" % (name.join(pieces[0]), node, name.join(pieces[1]))

    def _write(self, key: bytes, name: bytes, marked: dict[str, Any]) -> tuple[list[bytes], list[bytes]]:
        """Write a value that is not known, and remember it if the drawn name can be changed in it."""
        before, _, after = self._encode(marked).partition(_MARKED)
        pieces = (before.split(name), after.split(name)) if name else ([before], [after])
        if len(pieces[0]) + len(pieces[1]) != 2 + key.count(_BLANK) or _is_in_key(key):
            return [before], [after]
        # Emptied rather than trimmed: long objects are written in threads, and one may be looking.
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = pieces
        return pieces
