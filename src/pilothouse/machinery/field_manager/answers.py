"""Objects in versions that only others can convert to, for managers that wrote through these.

Field management waits for nobody. Where it comes to need a conversion that nobody has been asked for yet it is given
up, and made anew when the answer is there. It changes nothing that comes in: making it again is as good as once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from pilothouse.machinery.objects import Object
from pilothouse.machinery.structured.ownership import Unconvertible
from pilothouse.machinery.structured.shapes import Shape

Ask = Callable[[Object, str, str], Awaitable[tuple[Shape, Object]]]
"""An object, its version and the wanted one; gives the schema there and the object. Raises ``Unconvertible``."""
_Key = tuple[bytes, str]


class Unasked(Exception):
    """An object is needed in a version that nobody has been asked for yet."""

    def __init__(self, obj: Object, version: str, wanted: str) -> None:
        super().__init__(wanted)
        self.obj, self.version, self.wanted = obj, version, wanted


class Answers:
    """What others have converted for one request. All conversions go by way of the version of the request."""

    def __init__(self, ask: Ask, hub: str) -> None:
        self._ask, self._hub = ask, hub
        self._known: dict[_Key, tuple[Shape, Object] | Unconvertible] = {}

    def __call__(self, obj: Object, version: str, wanted: str) -> tuple[Shape, Object]:
        """The schema of a version, and the object in it. Raises ``Unasked``, or ``Unconvertible``."""
        if self._hub not in (version, wanted):
            obj, version = self(obj, version, self._hub)[1], self._hub
        answer = self._known.get(_key(obj, wanted))
        if answer is None:
            raise Unasked(obj, version, wanted)
        if isinstance(answer, Unconvertible):
            raise Unconvertible(str(answer))
        return answer

    async def fetch(self, missing: Unasked) -> None:
        """Ask for what is missing, and remember it."""
        answer: tuple[Shape, Object] | Unconvertible
        try:
            answer = await self._ask(missing.obj, missing.version, missing.wanted)
        except Unconvertible as error:
            answer = error
        self._known[_key(missing.obj, missing.wanted)] = answer


def _key(obj: Object, wanted: str) -> _Key:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS), wanted
