"""Looking at the requests of all processes that serve the cluster, from whichever of them one is connected to.

Who looks asks all, several times a second, under a name of his own; a process records from the first such question
until there was none for a while. So nobody need be told that a viewer has gone, or a process has come.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from pilothouse.console.recorder import Record, Recorder, Viewer
from pilothouse.console.vitals import Vitals, join_vitals
from pilothouse.console.workers import Workers

LEASE_SECONDS: Final = 5.0

_Answer = tuple[list[Record], int, dict[str, Any] | None]
"""What a process has to tell: requests, how many more there were, and how it is if that was asked."""


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

    async def look(self, name: str, with_vitals: bool) -> list[bytes]:
        """What there is to tell a viewer of this name, one object a line. Raises OSError."""
        answers: list[_Answer] = await self._ask_all(name, with_vitals)
        lines: list[bytes] = []
        records = sorted(record for requests, _, _ in answers for record in requests)
        missed = sum(missed for _, missed, _ in answers)
        if with_vitals:
            lines.append(orjson.dumps({"vitals": join_vitals([vitals for *_, vitals in answers if vitals])}))
        if records or missed:
            lines.append(b'{"requests":[%b],"missed":%d}' % (b",".join([data for _, data in records]), missed))
        return lines

    def leave(self, name: str) -> None:
        """The viewer has gone: no more for him, here at once and elsewhere soon."""
        viewer, timer = self._viewers.pop(name, (None, None))
        if viewer is not None and timer is not None:
            timer.cancel()
            self._recorder.leave(viewer)

    async def _answer(self, name: str, with_vitals: bool) -> _Answer:
        viewer = self._viewer(name)
        requests, missed = ([], 0) if viewer is None else viewer.take()
        return requests, missed, await self._vitals.read() if with_vitals else None

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
