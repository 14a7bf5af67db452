"""Tells those who come late of what an informer knows already, some of it in each turn of the event loop.

A process that begins to lead adds a hundred handlers and indexes to informers, and each may know a hundred thousand
objects: all in one go, that is a turn of seconds. So one latecomer after the other hears of some objects in each turn,
each in the state that is the newest by then.

    objects   a1 b1 c1 d1                 changes meanwhile:  c2, d gone
    told      a1 b1 │ (as a change: c2, as one that is new)  │ nothing of d

Whoever tells of a change asks ``forget`` first: if the latecomer has not heard of that object, the change is all that
he needs to hear.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from pilothouse.controllers.runtime.indexer import Key, Keys
from pilothouse.machinery.objects import Object

logger = logging.getLogger(__name__)
FEW: Final = 200
"""Of so many objects is told at once."""
A_TURN: Final = 50
"""And of so many in a turn, where there are more."""


@dataclass(slots=True)
class _Replay:
    """What one latecomer has still to hear of."""

    tell: Callable[[Key, Object], None]
    over: Callable[[], None]
    is_begun: bool = False
    heard: set[Key] = field(default_factory=set)
    """What changed before his time came."""
    order: Keys = field(default_factory=list)
    """Once his time has come, from the last object to the first; some may not be left."""
    left: set[Key] = field(default_factory=set)


class Replays:
    """The latecomers of one informer, in the order in which they came.

    ``known`` names the objects that there are, ``newest`` gives one as it is now.
    """

    def __init__(self, known: Callable[[], Keys], newest: Callable[[Key], Object | None]) -> None:
        self._known, self._newest = known, newest
        self._waiting: deque[Hashable] = deque()
        self._replays: dict[Hashable, _Replay] = {}

    def __bool__(self) -> bool:
        """Whether there is anybody who has not heard of everything."""
        return bool(self._replays)

    def __contains__(self, who: Hashable) -> bool:
        return who in self._replays

    def add(self, who: Hashable, tell: Callable[[Key, Object], None], over: Callable[[], None]) -> None:
        """Tell ``who`` of all objects in the turns to come, and call ``over`` when that is done."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)
        self._replays[who] = _Replay(tell, over)
        self._waiting.append(who)

    def forget(self, who: Hashable, key: Key) -> bool:
        """Whether ``who`` had still to hear of this object; no longer."""
        replay = self._replays.get(who)
        if replay is None:
            return False
        if not replay.is_begun:
            is_new = key not in replay.heard
            replay.heard.add(key)
            return is_new
        if key not in replay.left:
            return False
        replay.left.discard(key)
        return True

    def drop(self, who: Hashable) -> None:
        """Tell him nothing more."""
        self._replays.pop(who, None)

    def hurry(self, who: Hashable) -> None:
        """Tell him of everything that is left, now and from any thread; that it is over he hears in his turn."""
        replay = self._replays.get(who)
        if replay is not None:
            self._begin(replay)
            self._go_on(replay, len(replay.order))

    def _turn(self) -> None:
        try:
            who = self._waiting[0]
            replay = self._replays.get(who)
            if replay is not None:
                self._begin(replay)
                self._go_on(replay, A_TURN)
            if replay is None or not replay.order:
                self._waiting.popleft()
                if self._replays.pop(who, None) is not None and replay is not None:
                    replay.over()
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._turn)

    def _begin(self, replay: _Replay) -> None:
        """Only now: names of a hundred thousand objects for each who waits would fill the memory."""
        if not replay.is_begun:
            replay.order = self._known()[::-1]
            replay.left = {*replay.order} - replay.heard
            replay.is_begun, replay.heard = True, set()

    def _go_on(self, replay: _Replay, most: int) -> None:
        order, left = replay.order, replay.left
        for _ in range(most):
            try:
                key = order.pop()
            except IndexError:  # nothing left, or another thread was in a hurry
                break
            if key in left:
                left.discard(key)
                obj = self._newest(key)
                if obj is not None:
                    self._tell(replay, key, obj)

    def _tell(self, replay: _Replay, key: Key, obj: Object) -> None:
        try:
            replay.tell(key, obj)
        except Exception:  # whatever one object does, there are others
            logger.exception("cannot tell of %s/%s", *key)
