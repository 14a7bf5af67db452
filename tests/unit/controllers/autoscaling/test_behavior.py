from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.autoscaling.behavior import History, limit, stabilize


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int | None = None) -> dict[str, Any]:
    named = [{"type": type, "value": value, "periodSeconds": period} for type, value, period in policies]
    return {"policies": named, "selectPolicy": select, "stabilizationWindowSeconds": window}


def test_less_is_put_off() -> None:
    history = History()
    assert stabilize(history, 5, 5, None, 0.0) == (5, ("ReadyForNewScale", "recommended size matches current size"))
    assert stabilize(history, 5, 2, None, 100.0).replicas == 5
    assert stabilize(history, 5, 2, None, 100.0).why[0] == "ScaleDownStabilized"
    assert stabilize(history, 5, 2, None, 301.0).replicas == 2
    assert stabilize(history, 2, 9, None, 302.0).replicas == 9
    assert len(history.recommendations) < 6


def test_windows_of_both_directions() -> None:
    behavior = {"scaleUp": rules(window=60), "scaleDown": rules(window=0)}
    history = History([(0.0, 2)])
    assert stabilize(history, 2, 8, behavior, 30.0).replicas == 2
    assert stabilize(history, 2, 8, behavior, 30.0).why[0] == "ScaleUpStabilized"
    assert stabilize(history, 2, 8, behavior, 89.0).replicas == 8
    assert stabilize(history, 8, 1, behavior, 90.0).replicas == 1


@pytest.mark.parametrize(
    ("current", "desired", "replicas", "reason"),
    [
        (2, 3, 3, "DesiredWithinRange"),
        (2, 9, 4, "ScaleUpLimit"),
        (3, 9, 6, "ScaleUpLimit"),
        (8, 99, 10, "TooManyReplicas"),
        (5, 0, 1, "TooFewReplicas"),
    ],
)
def test_limits_without_behavior(current: int, desired: int, replicas: int, reason: str) -> None:
    decision = limit(History(), current, desired, 1, 10, None, 0.0)
    assert (decision.replicas, decision.why[0]) == (replicas, reason)


@pytest.mark.parametrize(
    ("up", "down", "current", "desired", "replicas", "reason"),
    [
        (rules(("Pods", 4, 60)), rules(), 2, 20, 6, "ScaleUpLimit"),
        (rules(("Pods", 4, 60), ("Percent", 900, 60)), rules(), 2, 50, 20, "ScaleUpLimit"),
        (rules(("Pods", 4, 60), ("Percent", 900, 60), select="Min"), rules(), 2, 50, 6, "ScaleUpLimit"),
        (rules(("Pods", 4, 60), select="Disabled"), rules(), 2, 50, 2, "ScaleUpLimit"),
        (rules(("Pods", 400, 60)), rules(), 2, 500, 100, "TooManyReplicas"),
        (rules(), rules(("Percent", 10, 60)), 50, 1, 45, "ScaleDownLimit"),
        (rules(), rules(("Percent", 10, 60), ("Pods", 20, 60)), 50, 1, 30, "ScaleDownLimit"),
        (rules(), rules(("Percent", 10, 60), ("Pods", 20, 60), select="Min"), 50, 1, 45, "ScaleDownLimit"),
        (rules(), rules(("Pods", 100, 60)), 50, 0, 1, "TooFewReplicas"),
        (rules(("Pods", 4, 60)), rules(), 2, 5, 5, "DesiredWithinRange"),
    ],
)
def test_policies(
    up: dict[str, Any], down: dict[str, Any], current: int, desired: int, replicas: int, reason: str
) -> None:
    decision = limit(History(), current, desired, 1, 100, {"scaleUp": up, "scaleDown": down}, 0.0)
    assert (decision.replicas, decision.why[0]) == (replicas, reason)


def test_what_was_done_counts() -> None:
    behavior = {"scaleUp": rules(("Pods", 4, 60)), "scaleDown": rules(("Pods", 2, 60))}
    history = History()
    history.scaled(2, 5, 0.0, behavior)
    assert limit(history, 5, 20, 1, 100, behavior, 30.0).replicas == 6
    assert limit(history, 5, 20, 1, 100, behavior, 61.0).replicas == 9
    history.scaled(9, 8, 61.0, behavior)
    assert limit(history, 8, 1, 1, 100, behavior, 62.0).replicas == 7
