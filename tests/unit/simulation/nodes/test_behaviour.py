from __future__ import annotations

from typing import Any

import pytest

from pilothouse.simulation.nodes.behaviour import PREFIX, BehaviourError, behaviour_of, duration, read_rules


def pod(annotations: dict[str, str] | None = None, owner: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "p", "namespace": "default", "labels": {"app": "x"}}
    metadata["annotations"] = {PREFIX + name: value for name, value in (annotations or {}).items()}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "controller": True}]
    return {"metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([], (None, 0)),
        (["true"], (0.0, 0)),
        (["/bin/false"], (0.0, 1)),
        (["sleep", "1.5"], (1.5, 0)),
        (["sleep", "2m"], (120.0, 0)),
        (["sleep", "infinity"], (None, 0)),
        (["sh", "-c", "echo hello; sleep 3; exit 7"], (3.0, 7)),
        (["/bin/sh", "-c", "sleep 1 && false"], (1.0, 1)),
        (["sh", "-c", "while true; do sleep 1; done"], (None, 0)),
        (["nginx", "-g", "daemon off;"], (None, 0)),
    ],
)
def test_commands_say_when_they_end(command: list[str], expected: tuple[float | None, int]) -> None:
    found = behaviour_of(pod(), {"name": "c", "image": "i", "command": command})
    assert (found.run_for, found.exit_code) == expected


def test_jobs_without_a_command_end_well() -> None:
    assert behaviour_of(pod(owner="Job"), {"name": "c", "image": "i"}).run_for == 0.0
    assert behaviour_of(pod(owner="ReplicaSet"), {"name": "c", "image": "i"}).run_for is None


def test_annotations_are_stronger_than_rules_and_rules_than_commands() -> None:
    rules = read_rules(
        [{"when": {"image": "i*", "labels": {"app": "x"}}, "then": {"run-for": "1m30s", "exit-code": 3}}]
    )
    container = {"name": "c", "image": "img", "command": ["true"]}
    assert behaviour_of(pod(), container, rules).run_for == 90.0
    annotated = pod({"exit-code": "4", "run-for.c": "forever", "run-for": "1s", "start-delay.other": "1h"})
    found = behaviour_of(annotated, container, rules)
    assert (found.run_for, found.exit_code, found.start_delay) == (None, 4, 0.0)


@pytest.mark.parametrize("annotation", [{"run-for": "soon"}, {"unknown": "1"}, {"exit-code": "x"}, {"unready": "yes"}])
def test_what_cannot_be_read_is_said(annotation: dict[str, str]) -> None:
    with pytest.raises(BehaviourError):
        behaviour_of(pod(annotation), {"name": "c", "image": "i"})


@pytest.mark.parametrize(
    "document", [{}, [1], [{"when": {}}], [{"when": {"x": 1}, "then": {}}], [{"then": {"y": "1"}}]]
)
def test_stage_files_are_checked(document: Any) -> None:
    with pytest.raises(BehaviourError):
        read_rules(document)


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("2s", 2.0), ("1h1m1s", 3661.0)])
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds
