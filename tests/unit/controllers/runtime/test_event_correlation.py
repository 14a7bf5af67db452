from __future__ import annotations

from typing import Any

from pilothouse.controllers.runtime.clock import SYSTEM
from pilothouse.controllers.runtime.event_correlation import Correlator

TIME = "2026-01-01T00:00:00Z"


def about(container: int) -> dict[str, Any]:
    part = f"spec.containers{{c{container}}}"
    return {
        "metadata": {"name": f"e{container}", "namespace": "n"},
        "involvedObject": {"kind": "Pod", "namespace": "n", "name": "p", "uid": "u", "fieldPath": part},
        "source": {"component": "kubelet", "host": "node"},
        "type": "Normal",
        "reason": "Started",
        "message": "Container started",
        "firstTimestamp": TIME,
        "lastTimestamp": TIME,
    }


def test_parts_of_one_object_share_what_may_be_said_of_it() -> None:
    correlator = Correlator(SYSTEM)
    assert sum(correlator.accepts(about(number)) for number in range(3_000)) == 25


def test_the_same_about_two_parts_are_two_events() -> None:
    correlator = Correlator(SYSTEM)
    assert [correlator.correlate(about(number)).patch is None for number in (1, 2, 1)] == [True, True, False]
