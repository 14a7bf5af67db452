"""How long a job waits before it replaces failed pods: 10 s, 20 s, 40 s, ... up to 10 minutes, anew after a success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST: Final = 10.0
_MOST: Final = 600.0
_MAX_INT32: Final = 2**31 - 1


class FailureRecord(NamedTuple):
    """Failures since the last success."""

    failures: int = 0
    last: Instant | None = None

    def with_pods(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> FailureRecord:
        """The record when these pods have ended."""
        failures = sorted(map(finish_time, failed))
        if not succeeded:
            return FailureRecord(self.failures + len(failures), failures[-1]) if failures else self
        latest = max(map(finish_time, succeeded))
        after = [each for each in failures if each > latest]
        return FailureRecord(len(after), after[-1] if after else None)

    def wait(self, now: Instant) -> float:
        """Seconds until the next pod may be created."""
        if not self.failures or self.last is None:
            return 0.0
        backoff = min(_FIRST * 2.0 ** min(self.failures - 1, 10), _MOST)
        return max(0.0, backoff - now.since(self.last))


def failures_of(pod: Object) -> tuple[int, int]:
    """How often the pod's index has failed before it: counted failures, and ignored ones."""
    annotations = pod["metadata"].get("annotations") or {}
    return _number(annotations.get(FAILURES)), _number(annotations.get(IGNORED_FAILURES))


def _number(text: str | None) -> int:
    number = int(text) if text is not None and text.isdigit() else 0
    return number if number <= _MAX_INT32 else 0


def wait_of_index(last_failed: Object | None, now: Instant) -> float:
    """Seconds until the pod that replaces this one may be created."""
    if last_failed is None:
        return 0.0
    return FailureRecord(sum(failures_of(last_failed)) + 1, finish_time(last_failed)).wait(now)


def finish_time(pod: Object) -> Instant:
    """When a pod ended: its last container, else when it became unready, was deleted, or was created."""
    metadata = pod["metadata"]
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    ready = condition_of(pod, "Ready") or {}
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if metadata.get("deletionTimestamp"):
        deleted = parse_time(metadata["deletionTimestamp"])
        return Instant(deleted.seconds - (metadata.get("deletionGracePeriodSeconds") or 0), deleted.nanos)
    return parse_time(metadata["creationTimestamp"])


def _containers_ended(pod: Object) -> Instant | None:
    """When the last container ended, sidecars included; None while one runs."""
    status = pod.get("status") or {}
    specs = pod["spec"].get("initContainers") or ()
    sidecars = {each["name"] for each in specs if each.get("restartPolicy") == "Always"}
    counted = [*(status.get("containerStatuses") or ())]
    counted += [each for each in status.get("initContainerStatuses") or () if each["name"] in sidecars]
    times = [((each.get("state") or {}).get("terminated") or {}).get("finishedAt") or "" for each in counted]
    return max(map(parse_time, times)) if times and all(times) else None
