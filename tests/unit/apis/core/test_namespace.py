"""Namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.machinery.errors import StatusError
from pilothouse.registry.rest.deletion import DeleteOptions, Outcome, plan_deletion

LATER = "2026-01-02T03:05:00Z"


def test_a_new_namespace(kind: Any) -> None:
    made = kind("v1", "namespaces").create({"spec": {"finalizers": ["a.b/c"]}, "status": {"phase": "Terminating"}})
    assert made["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def test_namespace_errors(kind: Any) -> None:
    namespaces = kind("v1", "namespaces")
    assert namespaces.errors({"spec": {"finalizers": ["x"]}}) == [
        'spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'
    ]
    stored = namespaces.create({})
    assert namespaces.update(stored, {"spec": {"finalizers": []}})["spec"] == {"finalizers": ["kubernetes"]}
    assert namespaces.update(stored, {"spec": {"finalizers": []}}, "finalize")["spec"] == {}
    assert namespaces.errors({"spec": {"finalizers": ["x"]}}, stored, "finalize")[0].startswith("spec.finalizers[0]: ")
    why = "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    assert namespaces.errors({"status": {"phase": "Terminating"}}, stored, "status") == [why]
    labelled = namespaces.update(stored, {"metadata": {"labels": {"kubernetes.io/metadata.name": "b"}}})
    assert labelled["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def plan(kind: Any, stored: dict[str, Any], **options: Any) -> Any:
    namespaces = kind("v1", "namespaces")
    return plan_deletion(namespaces.resource, namespaces.strategy, Context(now=LATER), stored, DeleteOptions(**options))


def test_a_namespace_goes_in_two_steps(kind: Any) -> None:
    stored = kind("v1", "namespaces").create({})
    first = plan(kind, stored)
    assert (first.outcome, first.then_remove) == (Outcome.MARKED, False)
    assert first.object["metadata"]["deletionTimestamp"] == LATER
    assert "deletionGracePeriodSeconds" not in first.object["metadata"]
    assert first.object["status"]["phase"] == "Terminating"
    assert stored["status"]["phase"] == "Active"
    assert plan(kind, first.object).outcome is Outcome.PENDING
    emptied = {**first.object, "spec": {}}
    assert plan(kind, emptied).outcome is Outcome.GONE


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, None),
        ({"orphan_dependents": True}, ["orphan"]),
        ({"orphan_dependents": False}, ["foregroundDeletion"]),
        ({"propagation_policy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagation_policy": "Background"}, None),
    ],
)
def test_cascading_finalizers_of_a_namespace(kind: Any, options: dict[str, Any], wanted: list[str] | None) -> None:
    marked = plan(kind, kind("v1", "namespaces").create({}), **options)
    assert marked.object["metadata"].get("finalizers") == wanted


def test_preconditions_of_a_namespace(kind: Any) -> None:
    stored = kind("v1", "namespaces").create({})
    with pytest.raises(StatusError) as caught:
        plan(kind, stored, precondition_uid="x")
    uid = stored["metadata"]["uid"]
    assert caught.value.message == (
        'Operation cannot be fulfilled on namespaces "a": '
        f"Precondition failed: UID in precondition: x, UID in object meta: {uid}"
    )


@pytest.mark.parametrize(
    ("version", "resource", "body"),
    [
        ("v1", "configmaps", {}),
        ("v1", "nodes", {}),
        ("v1", "secrets", {}),
        ("v1", "limitranges", {}),
    ],
)
def test_finalizers_need_a_domain_in_updates_too(kind: Any, version: str, resource: str, body: Any) -> None:
    what = kind(version, resource)
    stored = what.create(body)
    errs = what.errors({"metadata": {"finalizers": ["plain", "x.y/z"]}}, stored)
    why = 'Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    assert errs == [f"metadata.finalizers[0]: {why}"]
