"""Events through events.k8s.io: conversion and the strict rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.events.conversion import from_core, to_core
from pilothouse.apis.events.event import StrictEventStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.schema.decoding import decode

OWN = types.struct("events.v1.Event")
CORE = types.struct("core.v1.Event")
TIME = "2026-01-01T00:00:00.000000Z"
EVENT: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ns"},
    "eventTime": TIME,
    "reportingController": "a.b/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "type": "Normal",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
    "note": "n",
    "series": {"count": 2, "lastObservedTime": TIME},
}


def core(**changes: Any) -> dict[str, Any]:
    return to_core(decode(OWN, {**EVENT, **changes})[0])


def test_the_same_facts_under_other_names() -> None:
    made = core(deprecatedCount=3, deprecatedSource={"host": "h"})
    assert made["involvedObject"] == EVENT["regarding"]
    assert (made["message"], made["count"], made["source"]) == ("n", 3, {"host": "h"})
    assert made["reportingComponent"] == "a.b/c"
    assert decode(CORE, made)[0] == made


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "reportingController": st.text(max_size=3),
            "note": st.text(max_size=3),
            "deprecatedCount": st.integers(0, 5),
            "series": st.fixed_dictionaries({}, optional={"count": st.integers(0, 3)}),
            "regarding": st.fixed_dictionaries({}, optional={"name": st.text(max_size=2)}),
        },
    )
)
def test_there_and_back(fields: dict[str, Any]) -> None:
    event, _ = decode(OWN, {**EVENT, **fields})
    stored = to_core(event)
    assert decode(CORE, stored)[0] == stored
    assert from_core(stored) == event


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, []),
        ({"type": "Info"}, ['type: Invalid value: "": has invalid value: Info']),
        ({"deprecatedSource": {"component": "x"}}, ['source: Invalid value: "": needs to be unset']),
        ({"deprecatedCount": 1}, ['count: Invalid value: "": needs to be unset']),
        ({"series": {"count": 1, "lastObservedTime": TIME}}, ['series.count: Invalid value: "": should be at least 2']),
        ({"note": "x" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
    ],
)
def test_strict_rules(changes: dict[str, Any], wanted: list[str]) -> None:
    strategy = StrictEventStrategy()
    assert [str(err) for err in strategy.validate(Context(), core(**changes))] == wanted


def test_a_missing_controller_goes_by_its_new_name() -> None:
    errs = StrictEventStrategy().validate(Context(), core(reportingController=""))
    assert {err.field for err in errs} == {"reportingController"}


def test_only_the_series_may_change() -> None:
    strategy = StrictEventStrategy()
    old = core()
    assert strategy.validate_update(Context(), core(series={"count": 3, "lastObservedTime": TIME}), old) == []
    errs = strategy.validate_update(Context(), core(note="z", regarding={"namespace": "ns"}), old)
    assert [err.field for err in errs] == ["involvedObject", "message"]
    assert errs[1].body == 'Invalid value: "z": field is immutable'


def test_field_labels() -> None:
    strategy = StrictEventStrategy()
    assert strategy.convert_field("regarding.name", "x") == ("involvedObject.name", "x")
    with pytest.raises(ValueError, match=r"field label not supported: involvedObject\.name"):
        strategy.convert_field("involvedObject.name", "x")
