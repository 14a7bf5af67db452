"""What the job controller remembers of each job between two looks at it. All of it may be lost: it is made good."""

from __future__ import annotations

from pilothouse.controllers.jobs.backoff import FailureRecord
from pilothouse.controllers.jobs.tracking import Releases
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.expectations import UIDExpectations
from pilothouse.controllers.runtime.indexer import Key
from pilothouse.controllers.runtime.own_writes import OwnWrites


class JobMemory:
    """Pods that were asked for, finalizers that were taken off, statuses that were written, failures that were seen."""

    def __init__(self, clock: Clock) -> None:
        self.expected: UIDExpectations[Key] = UIDExpectations(clock)
        self.releases: Releases[Key] = Releases()
        self.writes: OwnWrites[Key] = OwnWrites()
        self.failures: dict[Key, FailureRecord] = {}

    def forget(self, key: Key) -> None:
        """The job has ended or gone."""
        self.expected.forget(key)
        self.releases.forget(key)
        self.writes.forget(key)
        self.failures.pop(key, None)
