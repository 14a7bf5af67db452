"""Looking at the requests of all processes that serve the cluster, from whichever of them one is connected to.

Who looks asks all, several times a second, under a name of his own; a process records from the first such question
until there was none for a while. So nobody need be told that a viewer has gone, or a process has come.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from pilothouse.console.recorder import Recorder, Viewer
from pilothouse.console.vitals import Vitals, join_vitals
from pilothouse.console.workers import Workers

LEASE_SECONDS: Final = 5.0


class Lookout:
    """Tells of the requests of this process, and asks all for theirs."""

    def __init__(self, recorder: Recorder, vitals: Vitals, workers: Workers) -> None:
        self._recorder, self._vitals = recorder, vitals
        self._viewers: dict[str, tuple[Viewer, asyncio.TimerHandle]] = {}
        self._ask_all = workers.gather("console requests", self._answer)

    @property
    def has_room(self) -> bool:
        """Whether one more may look."""
        return self._recorder.has_room

    async def look(self, name: str, with_vitals: bool) -> list[dict[str, Any]]:
        """What there is to tell a viewer of this name, one object a line. Raises OSError."""
        answers = [orjson.loads(each) for each in await self._ask_all(name, with_vitals)]
        lines: list[dict[str, Any]] = []
        requests = sorted((record for each in answers for record in each["requests"]), key=lambda each: each["time"])
        missed = sum(each["missed"] for each in answers)
        if with_vitals:
            lines.append({"vitals": join_vitals([each["vitals"] for each in answers])})
        if requests or missed:
            lines.append({"requests": requests, "missed": missed})
        return lines

    def leave(self, name: str) -> None:
        """The viewer has gone: no more for him, here at once and elsewhere soon."""
        viewer, timer = self._viewers.pop(name, (None, None))
        if viewer is not None and timer is not None:
            timer.cancel()
            self._recorder.leave(viewer)

    async def _answer(self, name: str, with_vitals: bool) -> bytes:
        viewer = self._viewer(name)
        requests, missed = ([], 0) if viewer is None else viewer.take()
        vitals = await self._vitals.read() if with_vitals else None
        return orjson.dumps({"requests": requests, "missed": missed, "vitals": vitals})

    def _viewer(self, name: str) -> Viewer | None:
        known = self._viewers.pop(name, None)
        if known is None:
            viewer = self._recorder.join()
        else:
            viewer, timer = known
            timer.cancel()
        if viewer is not None:
            timer = asyncio.get_running_loop().call_later(LEASE_SECONDS, self.leave, name)
            self._viewers[name] = viewer, timer
        return viewer
