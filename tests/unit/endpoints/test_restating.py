"""Refusals that show what the client wrote."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.endpoints.restating import restate
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind

DAEMON_SET = types.struct("apps.v1.DaemonSet")
LABELS = Path("spec", "template", "metadata", "labels")


@pytest.mark.parametrize(
    ("path", "value", "given", "shown"),
    [
        (LABELS, None, {"spec": {"template": {"metadata": {"labels": {}}}}}, "{}"),
        (LABELS, None, {"spec": {"template": {"metadata": {}}}}, "null"),
        (LABELS, {"a": "b"}, {"spec": {"template": {"metadata": {"labels": {}}}}}, '{"a":"b"}'),
        (Path("spec"), None, {"spec": {}}, "null"),
        (
            Path("spec", "template", "spec", "containers"),
            None,
            {"spec": {"template": {"spec": {"containers": []}}}},
            "[]",
        ),
        (LABELS, None, None, "null"),
        (Path("spec").child("a[").index(3), None, {"spec": {"a[": []}}, "null"),
    ],
)
def test_empty_lists_and_maps_show_as_given(path: Path, value: Any, given: Any, shown: str) -> None:
    error = errors.invalid(GroupKind("apps", "DaemonSet"), "d", [invalid(path, value, "is wrong")])
    restated = restate(error, DAEMON_SET, given)
    assert restated.message == f'DaemonSet.apps "d" is invalid: {path}: Invalid value: {shown}: is wrong'
    assert restated.details is not None
    assert restated.details["causes"][0]["message"] == f"Invalid value: {shown}: is wrong"
    assert (restated.details["name"], restated.details["group"]) == ("d", "apps")


def test_other_refusals_stay_as_they_are() -> None:
    error = errors.bad_request("no")
    assert restate(error, DAEMON_SET, {}) is error
