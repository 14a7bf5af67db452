"""Bodies of creates that came before, so that what follows from their bytes alone is worked out once.

Controllers make objects by the thousand from one template, and leave their names to the server: the bodies are the same
to the last byte. What such a body is decoded to, and which fields its creator comes to own, is remembered with it.
Everything that depends on more than the body (defaults that take the time, admission, validation of names) is not.

Only bodies in which nothing was found to warn of are remembered, and only when they come a second time: most never do.
"""

from __future__ import annotations

from typing import Final

import orjson

from pilothouse.machinery.field_manager import FieldsOfNew
from pilothouse.machinery.objects import Object

_MOST: Final = 32
_LARGEST: Final = 8 * 1024
_MOST_SEEN: Final = 512


class KnownBody(FieldsOfNew):
    """What is known of one body."""

    __slots__ = ("_decoded",)

    def __init__(self, decoded: bytes) -> None:
        super().__init__()
        self._decoded = decoded

    def decode(self) -> Object:
        """The object that the body was decoded to, anew."""
        obj: Object = orjson.loads(self._decoded)
        return obj


class KnownBodies:
    """The latest bodies of one endpoint that came more than once."""

    __slots__ = ("_known", "_seen")

    def __init__(self) -> None:
        self._known: dict[bytes, KnownBody] = {}
        self._seen: set[int] = set()

    def find(self, data: bytes) -> KnownBody | None:
        """What is known of these bytes."""
        return self._known.get(data) if len(data) <= _LARGEST else None

    def note(self, data: bytes, obj: Object) -> None:
        """Remember that these bytes were decoded to this object, if they have come before."""
        if len(data) > _LARGEST:
            return
        seen, digest = self._seen, hash(data)
        if digest not in seen:
            if len(seen) >= _MOST_SEEN:
                seen.clear()
            seen.add(digest)
            return
        try:
            # A struct that knows more than its fields (``Emptied``) is refused: its bytes would not have that.
            decoded = orjson.dumps(obj, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
        except orjson.JSONEncodeError:
            return
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[data] = KnownBody(decoded)
