"""Whether a version of a definition has been readable as a whole, where others convert its objects.

kube-apiserver has a cache of each version, which serves nobody before all objects could be converted once, and is given
up some time after something came that cannot be:

    nothing stored yet, or all converted   lists and watches are served; what is unreadable of what came since is told
    that for half a minute                 as below
    not all converted yet                  lists and watches are refused with 429, by an interval that grows; pages of
                                           everything and single objects are read past the cache
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

_GIVEN_UP_SECONDS: Final = 30.0
_LONGEST_RETRY: Final = 30.0
_GROWTH: Final = 0.06


class Initialization:
    """One version's state."""

    def __init__(self, *, done: bool, clock: Callable[[], float]) -> None:
        self.done = done
        self._clock = clock
        self._changed_at = clock()
        self._unreadable_since: float | None = None

    def succeed(self) -> None:
        """All objects could be converted."""
        self.done = True
        self._unreadable_since = None

    def fail(self) -> None:
        """Something could not."""
        now = self._clock()
        if not self.done:
            return
        if self._unreadable_since is None:
            self._unreadable_since = now
        elif now - self._unreadable_since > _GIVEN_UP_SECONDS:
            self.done = False
            self._changed_at = now

    @property
    def retry_after(self) -> int:
        """In how many seconds who is refused may come again."""
        return int(min(_LONGEST_RETRY, math.exp(min(_GROWTH * (self._clock() - self._changed_at), _LONGEST_RETRY))))
