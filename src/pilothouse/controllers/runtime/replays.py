"""Tells those who come late of what an informer knows already, some of it in each turn of the event loop.

A process that begins to lead adds a hundred handlers and indexes to informers, and each may know a hundred thousand
objects: all in one go, that is a turn of seconds. So one latecomer after the other hears of some objects in each turn,
each in the state that is the newest by then.

    objects   a1 b1 c1 d1        changes:  b2          │   c2, d gone, e1
    told                   (not his turn)  nothing     │ a1 b2 │ c2, e1 as new ones, nothing of d

Whoever tells of a change asks how much the latecomer ``knows``. Indexes and readings are made first, and handlers told
when all indexes are whole, those of other informers too (``IndexGate``). The turns are those of the loop in which there
is a place (``work_turns``): many informers may have latecomers at once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from time import perf_counter
from typing import Final, Protocol

from pilothouse.controllers.runtime.index_gate import IndexGate
from pilothouse.controllers.runtime.indexer import Key
from pilothouse.machinery.objects import Object
from pilothouse.net.work_turns import SECONDS, work_turns

logger = logging.getLogger(__name__)
FEW: Final = 200
"""Of so many objects is told at once."""
A_TURN: Final = 50
"""And of so many in a turn at most, where there are more."""


class Knowledge(Enum):
    """What a latecomer knows of an object."""

    LATER = auto()
    """Nothing, and he will be told of it as it is then."""
    NEW = auto()
    """Nothing; he is told of it now."""
    KNOWN = auto()


Tell = Callable[[Key, Object], None]
Add = Callable[[Hashable, Tell, Callable[[], None]], None]
"""``Replays.add`` or ``prepare``."""


class Known(Protocol):
    """What an informer knows, by where it is found."""

    def namespaces(self) -> list[str]:
        """Those with objects."""

    def names(self, namespace: str) -> list[str]:
        """The objects in one of them."""


@dataclass(slots=True)
class _Replay:
    """What one latecomer has still to hear of: what is in ``namespaces`` and ``names``, and he has not ``heard``."""

    tell: Tell
    over: Callable[[], None]
    heard: set[Key] = field(default_factory=set)
    is_begun: bool = False
    namespaces: list[str] = field(default_factory=list)
    """Those that come after this one."""
    namespace: str = ""
    names: list[str] = field(default_factory=list)
    """From the last to the first; some may not be there any more."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Replays:
    """The latecomers of one informer.

    ``known`` names the objects that there are, a namespace at a time: a hundred thousand names together would take a
    turn of their own. ``newest`` gives an object as it is now.
    """

    def __init__(
        self,
        known: Known,
        newest: Callable[[Key], Object | None],
        gate: IndexGate,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._known, self._newest, self._gate, self._clock = known, newest, gate, clock
        self._preparing: deque[Hashable] = deque()
        self._waiting: deque[Hashable] = deque()
        self._replays: dict[Hashable, _Replay] = {}
        self._is_due = False
        """Whether there will be a turn."""

    def __bool__(self) -> bool:
        """Whether there is anybody who has not heard of everything."""
        return bool(self._replays)

    def __contains__(self, who: Hashable) -> bool:
        return who in self._replays

    def prepare(self, who: Hashable, tell: Tell, over: Callable[[], None]) -> None:
        """Tell an index or a reading of all objects in the turns to come, before any handler."""
        self._replays[who] = _Replay(tell, over)
        self._preparing.append(who)
        self._await_turn()

    def add(self, who: Hashable, tell: Tell, over: Callable[[], None]) -> None:
        """Tell a handler of all objects in the turns to come, and call ``over`` when that is done."""
        self._replays[who] = _Replay(tell, over)
        self._waiting.append(who)
        self._await_turn()

    def knows(self, who: Hashable, key: Key) -> Knowledge:
        """What ``who`` knows of an object that changes now, and is told of it unless his time is to come."""
        replay = self._replays.get(who)
        if replay is None or key in replay.heard:
            return Knowledge.KNOWN
        if not replay.is_begun:
            return Knowledge.LATER
        replay.heard.add(key)
        return Knowledge.NEW

    def drop(self, who: Hashable) -> None:
        """Tell him nothing more."""
        self._replays.pop(who, None)

    def hurry(self, who: Hashable) -> None:
        """Tell him of everything that is left, now and from any thread; that it is over he hears in his turn."""
        replay = self._replays.get(who)
        if replay is not None:
            self._go_on(replay, inf)

    def _await_turn(self) -> None:
        if not self._is_due:
            self._is_due = True
            work_turns().call(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        line = self._preparing or self._waiting
        if line is self._waiting and not self._gate.is_open:
            self._is_due = True
            self._gate.wait(self._opened)
            return
        try:
            who = line[0]
            replay = self._replays.get(who)
            if replay is None or self._go_on(replay, A_TURN, self._clock() + SECONDS):
                line.popleft()
                if self._replays.pop(who, None) is not None and replay is not None:
                    replay.over()
        finally:
            if self._preparing or self._waiting:
                self._await_turn()

    def _opened(self) -> None:
        self._is_due = False
        self._await_turn()

    def _go_on(self, replay: _Replay, most: float, until: float = inf) -> bool:
        """Tell of so many objects at most, and of one at least; whether that was the last."""
        told = 0
        while (key := self._next(replay)) is not None:
            obj = self._newest(key)
            if obj is not None:
                self._tell(replay, key, obj)
                told += 1
                if told >= most or self._clock() >= until:
                    return False
        return True

    def _next(self, replay: _Replay) -> Key | None:
        """The next that he has not heard of. Another thread may be in a hurry meanwhile."""
        with replay.lock:
            if not replay.is_begun:  # only now: there may be many who wait
                replay.is_begun, replay.namespaces = True, self._known.namespaces()[::-1]
            while True:
                while replay.names:
                    key = replay.namespace, replay.names.pop()
                    if key not in replay.heard:
                        replay.heard.add(key)
                        return key
                if not replay.namespaces:
                    return None
                replay.namespace = replay.namespaces.pop()
                replay.names = self._known.names(replay.namespace)[::-1]

    def _tell(self, replay: _Replay, key: Key, obj: Object) -> None:
        try:
            replay.tell(key, obj)
        except Exception:  # whatever one object does, there are others
            logger.exception("cannot tell of %s/%s", *key)
