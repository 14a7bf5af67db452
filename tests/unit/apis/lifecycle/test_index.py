"""Evictions, requests for them, and the turns of responders."""

from __future__ import annotations

from typing import Any

import pytest

NOW = "2026-01-02T03:04:05Z"
LONG_AGO = "2025-01-02T03:04:05Z"
UID = "3f0e1c5c-21a4-4a4e-9f3b-0d5f1f0f7a51"
TARGET = {"pod": {"name": "p", "uid": UID}}
CORE = "imperative-eviction.k8s.io/evictor"


@pytest.fixture
def evictions(kind: Any) -> Any:
    return kind("lifecycle.k8s.io/v1alpha1", "evictions")


@pytest.fixture
def requests(kind: Any) -> Any:
    return kind("lifecycle.k8s.io/v1alpha1", "evictionrequests")


@pytest.mark.parametrize(
    ("target", "errs"),
    [
        (TARGET, []),
        ({}, ['spec.target: Invalid value: "": must specify one of: `pod`']),
        ({"pod": {}}, ["spec.target.pod.name: Required value", "spec.target.pod.uid: Required value"]),
        (
            {"pod": {"name": "p", "uid": "x"}},
            ['spec.target.pod.uid: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format'],
        ),
    ],
)
def test_targets(target: Any, errs: list[str], evictions: Any) -> None:
    assert evictions.errors({"spec": {"target": target}}) == errs


def test_targets_never_change(evictions: Any) -> None:
    stored = evictions.create({"spec": {"target": TARGET}, "status": {"observedGeneration": 1}})
    assert (stored["status"], stored["metadata"]["generation"]) == ({}, 1)
    assert evictions.update(stored, {})["metadata"]["generation"] == 1
    other = {"target": {"pod": {"name": "q", "uid": UID}}}
    assert evictions.errors({"spec": other}, stored) == ["spec.target: Invalid value: null: field is immutable"]


@pytest.mark.parametrize(
    ("requester", "intent", "errs"),
    [
        ("example.com/a", "Eviction", []),
        ("", "", ["spec.requester: Required value", "spec.intent: Required value"]),
        (
            "a",
            "Maybe",
            [
                "spec.requester: Invalid value: \"a\": must include a prefix (e.g. 'example.com/key')",
                'spec.intent: Unsupported value: "Maybe": supported values: "Eviction", "Withdrawn"',
            ],
        ),
        (
            "x.K8s.io/a",
            "Eviction",
            [
                'spec.requester: Invalid value: "x.K8s.io/a": domain names *.k8s.io, *.kubernetes.io are reserved',
                'spec.requester: Invalid value: "x.K8s.io/a": prefix part a lowercase RFC 1123 subdomain must consist '
                "of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'example.com', regex used for validation is"
                " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
    ],
)
def test_requests(requester: str, intent: str, errs: list[str], requests: Any) -> None:
    found = requests.errors({"spec": {"target": TARGET, "requester": requester, "intent": intent}})
    assert [error.replace("\\", "") for error in found] == [error.replace("\\", "") for error in errs]


def test_only_the_intent_of_a_request_changes(requests: Any) -> None:
    spec = {"target": TARGET, "requester": "example.com/a", "intent": "Eviction"}
    stored = requests.create({"spec": spec})
    assert requests.update(stored, {"spec": {"intent": "Withdrawn"}})["metadata"]["generation"] == 2
    assert requests.errors({"spec": {"requester": ""}}, stored) == [
        "spec.requester: Invalid value: null: field is immutable",
        "spec.requester: Required value",
    ]
    assert requests.row(stored)[1:6] == ["p", "Pod", "Pending", "example.com/a", "Eviction"]


def target(name: str, priority: int, state: str) -> dict[str, Any]:
    return {"name": name, "priority": priority, "state": state}


def status(*targets: dict[str, Any], reports: Any = None, **more: Any) -> dict[str, Any]:
    if reports is None:
        reports = [
            {"name": each["name"], **({"startTime": NOW} if each["state"] == "Active" else {})} for each in targets
        ]
    return {"targetResponders": list(targets), "responders": reports, **more}


def condition(name: str, state: str = "True") -> dict[str, Any]:
    return {"type": name, "status": state, "reason": "R", "message": "", "lastTransitionTime": NOW}


FIRST, SECOND = "a.example.com/r", CORE
BEGUN = status(target(FIRST, 2000, "Active"), target(SECOND, 100, "Inactive"))


@pytest.mark.parametrize(
    ("old", "new", "errs"),
    [
        ({}, BEGUN, []),
        (BEGUN, BEGUN, []),
        (
            {},
            status(target(FIRST, 2000, "Inactive"), target(SECOND, 100, "Active")),
            [
                'status.targetResponders[0].state: Invalid value: "Inactive": must be one of: Active, because this'
                " responder is next in line",
                'status.targetResponders[1].state: Invalid value: "Active": must be one of: Inactive, because the'
                " previously active has not finished processing",
            ],
        ),
        (
            BEGUN,
            status(
                target(FIRST, 2000, "Completed"),
                target(SECOND, 100, "Active"),
                reports=[
                    {"name": FIRST, "startTime": NOW, "completionTime": NOW},
                    {"name": SECOND, "startTime": NOW},
                ],
            ),
            ["status.responders[0]: Invalid value"],
        ),
        (
            status(
                target(FIRST, 2000, "Active"),
                target(SECOND, 100, "Inactive"),
                reports=[{"name": FIRST, "startTime": NOW, "completionTime": NOW}, {"name": SECOND}],
            ),
            status(
                target(FIRST, 2000, "Completed"),
                target(SECOND, 100, "Active"),
                reports=[
                    {"name": FIRST, "startTime": NOW, "completionTime": NOW},
                    {"name": SECOND, "startTime": NOW},
                ],
            ),
            [],
        ),
        (
            BEGUN,
            status(
                target(FIRST, 2000, "Interrupted"),
                target(SECOND, 100, "Active"),
                reports=[{"name": FIRST, "startTime": NOW}, {"name": SECOND, "startTime": NOW}],
            ),
            [
                "status.targetResponders[0].state: Forbidden: must stay Active because the responder is in progress and"
                " it should report status.responders.heartbeatTime or status.responders.completionTime"
            ],
        ),
        (
            BEGUN,
            {**BEGUN, "targetResponders": BEGUN["targetResponders"][:1]},
            [
                "status.targetResponders: Invalid value",
                "status.responders: Invalid value",
            ],
        ),
        (
            {},
            status(target(CORE, 200, "Active"), target("x.example.com/y", 5, "Inactive")),
            [
                "status.targetResponders[0].priority: Invalid value: 200: core k8s responder is expected to have"
                " priority: 100",
                "status.targetResponders[1].priority: Invalid value: 5: priorities 0-999 are reserved for responders"
                " with *.k8s.io suffix",
            ],
        ),
        (
            {},
            status(target(FIRST, 2000, "Active"), reports=[{"name": FIRST, "startTime": LONG_AGO}]),
            [f'status.responders[0].startTime: Invalid value: "{LONG_AGO}": must be set to the present time'],
        ),
        (
            {},
            status(target(FIRST, 2000, "Active"), reports=[{"name": FIRST, "heartbeatTime": NOW}]),
            [
                "status.responders[0].startTime: Required value: is required for an active responder",
                f'status.responders[0].heartbeatTime: Invalid value: "{NOW}": cannot be set before'
                " status.responders[0].startTime is set",
            ],
        ),
        (
            {"conditions": [condition("Failed")]},
            {"conditions": [condition("Failed", "False")]},
            ["status.conditions: Invalid value"],
        ),
        (
            {"observedGeneration": 3},
            {"observedGeneration": 2},
            ["status.observedGeneration: Invalid value: 2: may not be decreased from 3"],
        ),
        (
            {},
            {"requesters": [{"name": "a", "intent": "Eviction"}]},
            ["status.requesters[0].name: Invalid value: \"a\": must include a prefix (e.g. 'example.com/key')"],
        ),
        (
            BEGUN,
            status(target(FIRST, 2001, "Active"), target(SECOND, 100, "Inactive")),
            ["status.targetResponders[0].priority: Invalid value: null: field cannot be modified once set"],
        ),
    ],
)
def test_statuses(old: Any, new: Any, errs: list[str], evictions: Any) -> None:
    stored = evictions.create({"spec": {"target": TARGET}})
    stored["status"] = old
    found = evictions.errors({"status": None} if not new else {"status": new}, stored, "status")
    assert len(found) == len(errs), found
    for error, wanted in zip(found, errs, strict=True):
        assert error.startswith(wanted)


def test_rows(evictions: Any) -> None:
    stored = evictions.create({"spec": {"target": TARGET}})
    assert evictions.row(stored)[1:8] == ["p", "Pod", "Pending", "<unset> (0/0)", "<unset>", "<unknown>", "<none>"]
    requesters = [
        {"name": f"e.com/{n}", "intent": i} for n, i in (("b", "Eviction"), ("a", "Eviction"), ("c", "Withdrawn"))
    ]
    stored["status"] = {**BEGUN, "observedGeneration": 1, "requesters": requesters}
    row = evictions.row(stored)
    assert row[3:5] == ["Progressing", f"{FIRST} (1/2)"]
    assert row[5].startswith("Started (")
    assert row[7] == "e.com/a + 1 more..."
    stored["status"]["conditions"] = [condition("TargetEvicted")]
    assert evictions.row(stored)[3] == "TargetEvicted (R)"
