"""Whether the mutating plug-ins must see an object a second time, and which webhooks and policies run again then.

first run     a webhook changes the object    → whoever ran before it, and wants to, is due again
              a plug-in changed the object since a webhook saw it → that webhook is due again
second run    all plug-ins of our own, and the webhooks that are due; never a third run
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import orjson

from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.workers import weighed

K = TypeVar("K")


class Reinvocation:
    """The state of one request, shared by the plug-ins that call out."""

    __slots__ = ("again", "required", "rounds")

    def __init__(self) -> None:
        self.required = False
        self.again = False
        """Whether this is the second run."""
        self.rounds: dict[str, Round[Any]] = {}
        """By the name of the plug-in."""

    def require(self) -> None:
        """Ask for a second run."""
        self.required = True

    def begin(self) -> bool:
        """Start the second run if one was asked for."""
        if not self.required or self.again:
            return False
        self.again = True
        return True


class Round(Generic[K]):
    """What one plug-in knows of a request: who may have to be asked again, and who has to."""

    __slots__ = ("_asked", "_due", "_last", "_run")

    def __init__(self, run: Reinvocation) -> None:
        self._run = run
        self._asked: set[K] = set()
        self._due: set[K] = set()
        self._last = b""

    @property
    def number(self) -> int:
        """How many runs came before."""
        return int(self._run.again)

    def skips(self, key: K) -> bool:
        """Whether someone had his say and is not due again."""
        return self._run.again and key not in self._due

    def note(self, key: K) -> None:
        """Someone had his say who wants to be asked again after later changes."""
        self._asked.add(key)

    def changed(self) -> None:
        """The object was changed: a second run is needed, and whoever was asked before is due again."""
        self._run.require()
        self._retire()

    async def begin(self, attributes: Attributes) -> None:
        """Compare the object with how the first run left it."""
        if self._run.again and self._asked and self._last != await _snapshot(attributes):
            self._retire()

    async def end(self, attributes: Attributes) -> None:
        """Remember how the object was left."""
        if self._asked:
            self._last = await _snapshot(attributes)

    def _retire(self) -> None:
        self._due |= self._asked
        self._asked = set()


async def begin_round(attributes: Attributes, plugin: str) -> Round[Any]:
    """The plug-in's round of this request, a new one or that of the run before."""
    run: Reinvocation | None = attributes.reinvocation
    if run is None:
        run = attributes.reinvocation = Reinvocation()
    found = run.rounds.get(plugin)
    if found is None:
        found = run.rounds[plugin] = Round(run)
    await found.begin(attributes)
    return found


async def _snapshot(attributes: Attributes) -> bytes:
    return await weighed(attributes.weight, _sorted_json, attributes.object)


def _sorted_json(obj: Any) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
