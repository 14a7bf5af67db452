"""Pod failure policies, success policies and back-off."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.jobs.backoff import FAILURES, FailureRecord, finish_time, wait_of_index
from pilothouse.controllers.jobs.indexes import Indexes
from pilothouse.controllers.jobs.policies import judge, met_success_rule
from pilothouse.machinery.times import Instant, format_time


def pod(code: int | None = 1, at: int = 1000, **annotations: str) -> dict[str, Any]:
    state = {} if code is None else {"terminated": {"exitCode": code, "finishedAt": format_time(Instant(at))}}
    status = {
        "phase": "Failed",
        "containerStatuses": [{"name": "c", "state": state}],
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    metadata = {"name": "p", "namespace": "n", "annotations": annotations, "creationTimestamp": format_time(Instant(1))}
    return {"metadata": metadata, "spec": {}, "status": status}


def policy(action: str, **rule: Any) -> dict[str, Any]:
    return {"spec": {"podFailurePolicy": {"rules": [{"action": action, **rule}]}}}


def exits(operator: str, *values: int, name: str | None = None) -> dict[str, Any]:
    return {"onExitCodes": {"operator": operator, "values": list(values), "containerName": name}}


DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("job", "code", "action", "message"),
    [
        ({"spec": {}}, 1, "Count", ""),
        (policy("Ignore", **exits("In", 1)), 1, "Ignore", ""),
        (policy("Ignore", **exits("In", 2)), 1, "Count", ""),
        (policy("FailIndex", **exits("NotIn", 2)), 1, "FailIndex", ""),
        (policy("FailIndex", **exits("NotIn", 2)), 0, "Count", ""),
        (policy("FailIndex", **exits("NotIn", 2)), None, "Count", ""),
        (policy("FailIndex", **exits("In", 1, name="other")), 1, "Count", ""),
        (
            policy("FailJob", **exits("In", 7, name="c")),
            7,
            "FailJob",
            "Container c for pod n/p failed with exit code 7 matching FailJob rule at index 0",
        ),
        (
            policy("FailJob", **DISRUPTED),
            1,
            "FailJob",
            "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0",
        ),
        (policy("Ignore", **DISRUPTED), 1, "Ignore", ""),
    ],
)
def test_judge(job: dict[str, Any], code: int | None, action: str, message: str) -> None:
    judgement = judge(job, pod(code))
    assert (judgement.action, judgement.message) == (action, message)
    assert judgement.counts is (action != "Ignore")


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededIndexes": "0-2"}, "0-2", True),
        ({"succeededIndexes": "0-2"}, "0,1,3", False),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, "0,2", True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, "0,3,4", False),
        ({"succeededCount": 2}, "0,4", True),
        ({"succeededCount": 2}, "4", False),
        ({"succeededIndexes": "9"}, "0-4", False),
    ],
)
def test_success(rule: dict[str, Any], succeeded: str, met: bool) -> None:
    job = {"spec": {"completions": 5, "successPolicy": {"rules": [rule]}}}
    found = met_success_rule(job, Indexes.parse(succeeded, 5))
    assert found == ("Matched rules at index 0" if met else None)


@pytest.mark.parametrize(("failures", "wait"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (100, 600)])
def test_back_off(failures: int, wait: float) -> None:
    assert FailureRecord(failures, Instant(1000)).wait(Instant(1000)) == wait


def test_failures_since_the_last_success() -> None:
    record = FailureRecord(3, Instant(900)).with_pods([], [pod(at=1000)])
    assert record == FailureRecord(4, Instant(1000))
    assert record.with_pods([pod(at=1010)], []) == FailureRecord()
    assert record.with_pods([pod(at=1010)], [pod(at=1005), pod(at=1020)]) == FailureRecord(1, Instant(1020))


def test_back_off_of_an_index() -> None:
    assert wait_of_index(None, Instant(1000)) == 0
    assert wait_of_index(pod(**{FAILURES: "1"}), Instant(1005)) == 15
    assert wait_of_index(pod(**{FAILURES: "nonsense"}), Instant(1005)) == 5


def test_when_a_pod_ended() -> None:
    running = pod(None)
    assert finish_time(running) == Instant(1)
    running["metadata"] |= {"deletionTimestamp": format_time(Instant(500)), "deletionGracePeriodSeconds": 30}
    assert finish_time(running) == Instant(470)
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(Instant(450))}
    running["status"]["conditions"].append(ready)
    assert finish_time(running) == Instant(450)
