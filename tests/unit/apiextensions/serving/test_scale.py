"""Applying to the scale of a custom resource."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiextensions.serving.scale import SCALE, ScaleBody, ScaleFieldManager
from pilothouse.apis import types
from pilothouse.machinery.errors import StatusError

NOW = "2024-01-01T00:00:00Z"
OWNED = {
    "manager": "first",
    "operation": "Update",
    "apiVersion": "autoscaling/v1",
    "time": NOW,
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}
WHY = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"


def scale(replicas: int, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "n", **metadata}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}


def apply(live: dict[str, Any], replicas: int, *, force: bool = False) -> dict[str, Any]:
    manager = ScaleFieldManager(types.struct("autoscaling.v1.Scale"), SCALE, subresource="scale")
    return manager.apply(live, scale(replicas), "second", force=force, now=NOW)


def test_what_changes_nothing_is_taken() -> None:
    applied = apply(scale(1, uid="u", managedFields=[OWNED]), 1)
    assert [entry["manager"] for entry in applied["metadata"]["managedFields"]] == ["second", "first"]


@pytest.mark.parametrize(
    ("live", "force", "message"),
    [
        (scale(1, uid="u"), True,
         f"failed to create manager for existing fields: failed to convert live object (/; {SCALE}) {WHY}"),
        (scale(1, uid="u", managedFields=[OWNED]), True, f"failed to convert new object (n/a; {SCALE}) {WHY}"),
        (scale(1, uid="u", managedFields=[OWNED]), False,
         'Apply failed with 1 conflict: conflict with "first" using autoscaling/v1: .spec.replicas'),
    ],
)  # fmt: skip
def test_refusals(live: dict[str, Any], force: bool, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply(live, 2, force=force)
    assert caught.value.message == message


def test_a_change_of_metadata_is_one_too() -> None:
    manager = ScaleFieldManager(types.struct("autoscaling.v1.Scale"), SCALE, subresource="scale")
    with pytest.raises(StatusError, match="failed to convert new object"):
        manager.apply(scale(1, uid="u", managedFields=[OWNED]), scale(1, uid="v"), "second", force=True, now=NOW)


@pytest.mark.parametrize(
    "value", [[], "x", {"apiVersion": 5}, {"kind": "Foo"}, {"apiVersion": "v1", "kind": "Scale"}, {"kind": {}}]
)
def test_whatever_is_wrong_with_a_scale_the_same_is_said(value: Any) -> None:
    body = ScaleBody(SCALE, types.struct("autoscaling.v1.Scale"), "v1")
    with pytest.raises(StatusError, match=r"no kind is registered for the type v1\.Scale in scheme "):
        body.identify(value, b"")
    assert body.unreadable(SCALE, "for whatever reason").code == 400


def test_a_patch_of_another_kind_is_refused_before_anything_is_converted() -> None:
    manager = ScaleFieldManager(types.struct("autoscaling.v1.Scale"), SCALE, subresource="scale")
    with pytest.raises(StatusError) as caught:
        manager.apply(scale(1), {"spec": {"replicas": 7}}, "second", force=False, now=NOW)
    assert (caught.value.code, caught.value.message) == (400, "invalid object type: /, Kind=")
