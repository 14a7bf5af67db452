"""Definitions are waited for: established, discovered, answering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pilothouse.testing import definitions
from pilothouse.testing.definitions import DEFINITIONS, await_condition, establish

DEFINITION = {
    "metadata": {"name": "boats.late.example"},
    "spec": {
        "group": "late.example",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True}, {"name": "v0", "served": False}],
    },
}
ESTABLISHED = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
GROUP = {"metadata": {"name": "late.example"}, "versions": [{"version": "v1", "resources": [{"resource": "boats"}]}]}


class LateServer:
    """Every path answers as it should only when it is asked the third time."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def __call__(self, method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> tuple[int, Any]:
        if method == "POST":
            return 201, body
        self.asked[path] = self.asked.get(path, 0) + 1
        is_late = self.asked[path] < 3
        answers: dict[str, tuple[tuple[int, Any], tuple[int, Any]]] = {
            f"{DEFINITIONS}/boats.late.example": ((200, {"status": {"conditions": []}}), (200, ESTABLISHED)),
            "/apis/late.example/v1": ((404, {}), (200, {"resources": [{"name": "boats"}]})),
            "/apis/late.example/v1/boats?limit=1": ((404, {}), (200, {"items": []})),
            "/apis": ((200, {"items": []}), (200, {"items": [GROUP]})),
        }
        return answers[path][0 if is_late else 1]


def test_every_step_is_waited_for() -> None:
    server = LateServer()
    assert establish(server, DEFINITION)["kind"] == "CustomResourceDefinition"
    assert set(server.asked.values()) == {3}
    assert len(server.asked) == 4


def test_what_never_comes_is_said_with_the_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "PATIENCE_SECONDS", 0.0)
    with pytest.raises(AssertionError, match="never"):
        await_condition(lambda: "never", lambda found: found == "now")


def test_a_refused_definition_is_not_waited_for() -> None:
    with pytest.raises(AssertionError, match="taken"):
        establish(lambda *request: (409, "taken"), DEFINITION)
