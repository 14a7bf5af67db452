"""Core events."""

from __future__ import annotations

from typing import Any

import pytest


def test_old_and_new_events(kind: Any) -> None:
    events = kind("v1", "events")
    assert events.errors({"involvedObject": {"namespace": "ns"}}) == []
    mismatch = 'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    assert events.errors({"involvedObject": {"namespace": "other"}}) == [mismatch]
    found = events.errors({"involvedObject": {"namespace": "ns"}, "eventTime": "2026-01-01T00:00:00.000000Z"})
    assert [error.partition(":")[0] for error in found] == [
        "reportingComponent", "reportingComponent", "reportingComponent", "reportingInstance", "action", "reason",
    ]  # fmt: skip


def test_event_rows_and_fields(kind: Any) -> None:
    events = kind("v1", "events")
    made = events.create(
        {
            "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "fieldPath": "spec"},
            "source": {"component": "kubelet", "host": "n1"},
            "message": " hello\n",
            "type": "Normal",
            "reason": "R",
        }
    )
    row = events.row(made)
    assert row == ["<unknown>", "Normal", "R", "pod/p", "spec", "kubelet, n1", "hello", "<unknown>", 1, "a"]
    fields = events.strategy.fields(made)
    assert (fields["involvedObject.kind"], fields["source"]) == ("Pod", "kubelet")
    assert set(fields) == events.strategy.field_labels


def test_events_may_have_any_finalizer(kind: Any) -> None:
    body = {"metadata": {"name": "a", "finalizers": ["plain"]}, "involvedObject": {"namespace": "ns"}}
    assert kind("v1", "events").errors(body) == []
    strict = kind("events.k8s.io/v1", "events").errors(body)
    assert any(error.startswith('metadata.finalizers[0]: Invalid value: "plain": name is neither') for error in strict)


def test_metadata_of_core_events_is_judged_last(kind: Any) -> None:
    nameless = {"metadata": {"name": ""}, "involvedObject": {"namespace": "elsewhere"}}
    assert kind("v1", "events").errors(nameless) == [
        'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'
    ]


@pytest.mark.parametrize(("version", "count"), [("v1", 0), ("events.k8s.io/v1", 1)])
def test_prefixes_of_strict_events_are_subdomains(kind: Any, version: str, count: int) -> None:
    errs = kind(version, "events").errors(
        {"metadata": {"name": "a", "generateName": "Not_Valid"}, "involvedObject": {"namespace": "ns"}}
    )
    assert sum("metadata.generateName" in error for error in errs) == count
