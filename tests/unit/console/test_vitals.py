from __future__ import annotations

from typing import Any

from pilothouse.console.vitals import join_vitals


def vitals(lag: float, size: int, waiting: list[int], executing: int) -> dict[str, Any]:
    level = {"name": "exempt", "seats": 2, "executing": executing, "waiting": 0, "dispatched": 5, "rejected": 0}
    return {
        "loopLag": lag,
        "store": {"bytes": size, "revision": 9, "compacted": 1, "objects": {"pods": size}},
        "watchCount": len(waiting),
        "watches": [{"what": "pods", "client": "ann", "waiting": each, "live": True} for each in waiting],
        "levels": [level],
    }


def test_those_of_several_processes_are_one() -> None:
    found = join_vitals([vitals(0.1, 0, [1, 5], 1), vitals(0.3, 700, [3], 2)])
    assert (found["processes"], found["loopLag"], found["watchCount"]) == (2, 0.3, 3)
    assert found["store"]["bytes"] == 700 and found["store"]["objects"] == {"pods": 700}
    assert [watch["waiting"] for watch in found["watches"]] == [5, 3, 1]
    (level,) = found["levels"]
    assert level == {"name": "exempt", "seats": 4, "executing": 3, "waiting": 0, "dispatched": 10, "rejected": 0}


def test_those_of_one_are_its_own() -> None:
    one = vitals(0.1, 3, [2], 1)
    assert join_vitals([one]) == {"processes": 1, **one}
