from typing import Any

import pytest

from pilothouse.controllers.runtime.pods import is_active, is_available, is_ready, is_terminal, phase_of
from pilothouse.machinery.times import parse_time


def pod(ready: str = "", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    since = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": since}] if ready else []
    return {"metadata": {"name": "a", **metadata}, "status": {"phase": phase, "conditions": conditions}}


def test_ready_is_what_the_condition_says() -> None:
    assert is_ready(pod("True"))
    assert not is_ready(pod("False"))
    assert not is_ready({"metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("seconds", "at", "expected"), [(0, "00:00:00", True), (10, "00:00:09", False), (10, "00:00:10", True)]
)
def test_available_is_ready_for_some_time(seconds: int, at: str, expected: bool) -> None:
    now = parse_time(f"2026-01-01T{at}Z")
    assert is_available(pod("True"), seconds, now) is expected
    assert not is_available(pod("False"), seconds, now)


def test_active_is_neither_over_nor_going() -> None:
    assert is_active(pod())
    assert not is_active(pod(phase="Failed"))
    assert not is_active(pod(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert is_terminal(pod(phase="Succeeded"))
    assert phase_of({"metadata": {}}) == "Pending"
