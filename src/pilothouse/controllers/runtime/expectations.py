"""What a controller has asked for and not yet seen in its informer, so that it does not ask twice.

A controller that creates three pods expects three creations; until its informer has shown them all (or five minutes
have passed), its view of the pods is known to be old and it leaves them alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from pilothouse.controllers.runtime.clock import SYSTEM, Clock

K = TypeVar("K", bound=Hashable)
TIMEOUT_SECONDS: Final = 300.0


class _Expected:
    __slots__ = ("at", "creations", "deletions")

    def __init__(self, creations: int, deletions: int, at: float) -> None:
        self.creations, self.deletions, self.at = creations, deletions, at


class Expectations(Generic[K]):
    """Counts of creations and deletions that a controller waits for, by its key."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._expected: dict[K, _Expected] = {}

    def satisfied(self, key: K) -> bool:
        """Whether the key may be reconciled: all was seen, nothing was expected, or it took too long."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and expected.deletions <= 0):
            return True
        return self._clock.monotonic() - expected.at > TIMEOUT_SECONDS

    def expect(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Wait for so many from now on, in place of what was expected before."""
        self._expected[key] = _Expected(creations, deletions, self._clock.monotonic())

    def expect_creations(self, key: K, count: int) -> None:
        """Wait for so many creations."""
        self.expect(key, creations=count)

    def expect_deletions(self, key: K, count: int) -> None:
        """Wait for so many deletions."""
        self.expect(key, deletions=count)

    def raise_by(self, key: K, creations: int = 0, deletions: int = 0) -> None:
        """Wait for more than before, where anything was expected at all."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations += creations
            expected.deletions += deletions

    def creation_observed(self, key: K) -> None:
        """One was seen, or could not be created after all."""
        self.raise_by(key, creations=-1)

    def deletion_observed(self, key: K) -> None:
        """One was seen, or could not be deleted after all."""
        self.raise_by(key, deletions=-1)

    def forget(self, key: K) -> None:
        """Expect nothing: the object behind the key has gone."""
        self._expected.pop(key, None)


class UIDExpectations(Expectations[K]):
    """Knows which objects are to go, so that one that goes twice, or another, is not counted."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        super().__init__(clock)
        self._uids: dict[K, set[str]] = {}

    def expect_deletions_of(self, key: K, uids: Iterable[str]) -> None:
        """Wait until these have gone."""
        self._uids[key] = set(uids)
        self.expect_deletions(key, len(self._uids[key]))

    def deletion_of_observed(self, key: K, uid: str) -> None:
        """An object has gone, or begun to; counts if it was waited for."""
        uids = self._uids.get(key)
        if uids is not None and uid in uids:
            uids.discard(uid)
            self.deletion_observed(key)

    def uids(self, key: K) -> frozenset[str]:
        """What has yet to go."""
        return frozenset(self._uids.get(key, ()))

    def forget(self, key: K) -> None:
        """Expect nothing: the object behind the key has gone."""
        super().forget(key)
        self._uids.pop(key, None)
