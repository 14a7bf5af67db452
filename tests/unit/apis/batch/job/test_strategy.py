from __future__ import annotations

import pytest

from pilothouse.apis import types
from pilothouse.apis.batch.job.strategy import JobStatusStrategy, JobStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode

STRATEGY = JobStrategy()
CTX = Context()
UID = "0f0f0f0f-0000-1111-2222-333333333333"


def made(spec: Object | None = None, template: Object | None = None, **more: Object) -> Object:
    """A defaulted job with one container that never restarts."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}], **(template or {})}
    metadata = {"name": "j", "namespace": "n", "uid": UID, "generation": 1, **more.pop("metadata", {})}
    labels = {"labels": more.pop("labels")} if "labels" in more else {}
    body = {"metadata": metadata, "spec": {"template": {"metadata": labels, "spec": pod}, **(spec or {})}, **more}
    obj, _ = decode(types.struct("batch.v1.Job"), body)
    STRATEGY.default(obj)
    return obj


def created(spec: Object | None = None, template: Object | None = None, **more: Object) -> Object:
    """The same, as it would be stored."""
    obj = made(spec, template, **more)
    STRATEGY.prepare_for_create(CTX, obj)
    STRATEGY.read_back(obj)
    return obj


def errors_of(obj: Object, old: Object | None = None) -> list[str]:
    errs = STRATEGY.validate(CTX, obj) if old is None else STRATEGY.validate_update(CTX, obj, old)
    return [str(e) for e in errs]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ({"parallelism": 3}, {"parallelism": 3, "backoffLimit": 6}),
        ({"completions": 4}, {"completions": 4, "parallelism": 1, "backoffLimit": 6}),
        (
            {"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}},
            {"backoffLimit": 2147483647, "podReplacementPolicy": "Failed"},
        ),
    ],
)
def test_defaults(spec: Object, expected: Object) -> None:
    got = made(spec)["spec"]
    assert {key: got.get(key) for key in expected} == expected
    assert (got["completionMode"], got["suspend"], got["manualSelector"]) == ("NonIndexed", False, False)
    assert ("completions" in got) is (spec.get("parallelism") is None)


def test_defaults_are_idempotent_and_what_a_body_decodes_to() -> None:
    obj = created()
    again, _ = decode(types.struct("batch.v1.Job"), obj)
    STRATEGY.default(again)
    assert again == obj


GENERATED = {
    "job-name": "j",
    "batch.kubernetes.io/job-name": "j",
    "controller-uid": UID,
    "batch.kubernetes.io/controller-uid": UID,
}


def test_pods_get_generated_labels_and_the_job_a_selector() -> None:
    obj = created()
    assert obj["spec"]["template"]["metadata"]["labels"] == GENERATED
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert obj["metadata"]["labels"] == GENERATED
    assert errors_of(obj) == []


def test_a_job_without_labels_takes_those_of_its_pods() -> None:
    assert created(labels={"app": "a"})["metadata"]["labels"] == {"app": "a", **GENERATED}
    assert created(metadata={"labels": {"mine": "1"}}, labels={"app": "a"})["metadata"]["labels"] == {"mine": "1"}


def test_a_report_without_labels_leaves_those_of_the_pods() -> None:
    job = created()
    del job["metadata"]["labels"]
    JobStatusStrategy().read_back(job)
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


def test_a_manual_selector_is_left_alone() -> None:
    selector = {"matchLabels": {"app": "a"}}
    obj = created({"manualSelector": True, "selector": selector}, labels={"app": "a"})
    assert obj["spec"]["selector"] == selector
    assert obj["spec"]["template"]["metadata"]["labels"] == {"app": "a"}
    assert errors_of(obj) == []


def test_labels_that_contradict_the_generated_ones_are_refused() -> None:
    obj = created(labels={"job-name": "other"})
    assert len(errors_of(obj)) == 1
    assert errors_of(obj)[0].startswith("spec.template.metadata.labels[job-name]: Invalid value: {")
    assert errors_of(obj)[0].endswith("must be 'j'")


INDEXED: Object = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"parallelism": -1}, ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"completionMode": "Random"},
            ['spec.completionMode: Unsupported value: "Random": supported values: "NonIndexed", "Indexed"'],
        ),
        (
            {"completionMode": "Indexed", "parallelism": 100_001},
            [
                "spec.completions: Required value: when completion mode is Indexed",
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is "
                "Indexed",
            ],
        ),
        (
            {**INDEXED, "completions": 100_001, "parallelism": 10_001, "backoffLimitPerIndex": 1},
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are "
                "above "
                "100000 and used with backoff limit per index",
            ],
        ),
        ({"managedBy": ""}, ["spec.managedBy: Required value"]),
        ({"managedBy": "example.com/" + "x" * 60}, ["spec.managedBy: Too long: may not be more than 63 bytes"]),
        (
            {
                "podFailurePolicy": {
                    "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [2, 1]}}]
                }
            },
            [
                'spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the '
                "backoffLimitPerIndex to be "
                "set",
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,1]: must be ordered",
            ],
        ),
        (
            {"podFailurePolicy": {"rules": [{"onPodConditions": [{"type": "a b"}], "onExitCodes": {}}]}},
            [
                'spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" '
                '"Ignore"]',
                'spec.podFailurePolicy.rules[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: null: at least one value is "
                "required",
                'spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: "a b": name part must '
                "consist of "
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not "
                "supported",
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 4}, {}]}},
            [
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the "
                "number "
                "of specified completions)",
                "spec.successPolicy.rules[1]: Required value: at least one of succeededCount or succeededIndexes "
                "must be "
                "specified",
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 2, "succeededIndexes": "0"}]}},
            [
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 2: must be less than or equal to 1 (the "
                "number "
                "of indexes in the specified succeededIndexes field)"
            ],
        ),
    ],
)
def test_validation(spec: Object, expected: list[str]) -> None:
    assert errors_of(created(spec)) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Always", 'Required value: valid values: "OnFailure", "Never"'),
        ("OnFailure", 'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified'),
    ],
)
def test_restart_policies(policy: str, expected: str) -> None:
    obj = created({"podFailurePolicy": {"rules": []}}, {"restartPolicy": policy})
    assert errors_of(obj) == [f"spec.template.spec.restartPolicy: {expected}"]


def test_indexed_jobs_need_names_that_leave_room() -> None:
    obj = created(INDEXED, metadata={"name": "j" * 62})
    assert errors_of(obj) == [
        f'metadata.name: Invalid value: "{"j" * 62}": will not able to create pod with invalid DNS label: {"j" * 62}-2'
    ]


def changed(old: Object, spec: Object | None = None, template: Object | None = None) -> Object:
    """The old job with another spec and template."""
    new = {**old, "spec": {**old["spec"], **(spec or {})}}
    pods = new["spec"]["template"]
    new["spec"]["template"] = {**pods, "spec": {**pods["spec"], **(template or {})}}
    return new


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"parallelism": 5, "suspend": True}, []),
        ({"completions": 5}, ["spec.completions: Invalid value: 5: field is immutable"]),
        ({"managedBy": "a.com/b"}, ['spec.managedBy: Invalid value: "a.com/b": field is immutable']),
        ({"managedBy": "a.com/&"}, ['spec.managedBy: Invalid value: "a.com/\\u0026": field is immutable']),
        (
            {"selector": {"matchLabels": {"job-name": "j"}}},
            ['spec.selector: Invalid value: {"matchLabels":{"job-name":"j"}}: field is immutable'],
        ),
    ],
)
def test_changes(spec: Object, expected: list[str]) -> None:
    old = created()
    assert errors_of(changed(old, spec), old) == expected


def test_indexed_jobs_scale_in_both_numbers_at_once() -> None:
    old = created(INDEXED)
    assert errors_of(changed(old, {"completions": 5, "parallelism": 5}), old) == []
    assert errors_of(changed(old, {"completions": 5}), old) == [
        "spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism"
    ]


DIRECTIVES: Object = {
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "z", "operator": "Exists"}]}
    ]}}},
    "containers": [{"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "2"}}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "suspended", "allowed"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"startTime": "2024-01-01T00:00:00Z"}, True, False),
        (
            {"startTime": "2024-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]},
            True,
            True,
        ),
        ({"active": 1}, True, False),
    ],
)
def test_where_pods_run_may_change_while_a_job_rests(status: Object, suspended: bool, allowed: bool) -> None:
    old = {**created({"suspend": suspended}), "status": status}
    template = dict(DIRECTIVES)
    template["containers"] = [{**old["spec"]["template"]["spec"]["containers"][0], **DIRECTIVES["containers"][0]}]
    errs = errors_of(changed(old, template=template), old)
    assert (errs == []) is allowed
    if not allowed:
        assert errs[0].startswith('spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":')


def test_images_never_change() -> None:
    old = created({"suspend": True})
    containers = [{**old["spec"]["template"]["spec"]["containers"][0], "image": "y"}]
    (error,) = errors_of(changed(old, template={"containers": containers}), old)
    assert error.startswith(
        'spec.template.spec: Invalid value: {"Volumes":null,"InitContainers":null,"Containers":[{"Name'
    )


START = "2024-01-01T00:00:00Z"


def condition(kind: str, status: str = "True") -> Object:
    return {"type": kind, "status": status}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"active": 1, "ready": 1, "startTime": START}, []),
        ({}, {"ready": 1}, ["status.ready: Invalid value: 1: cannot set more ready pods than active"]),
        (
            {},
            {"conditions": [condition("Complete")]},
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true "
                "condition",
                "status.startTime: Required value: startTime is required for finished job",
            ],
        ),
        (
            {"startTime": START},
            {
                "startTime": START,
                "completionTime": "2023-01-01T00:00:00Z",
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
            },
            ['status.completionTime: Invalid value: "2023-01-01T00:00:00Z": must be equal to or after `startTime`'],
        ),
        (
            {"startTime": START, "conditions": [condition("FailureTarget"), condition("Failed")], "failed": 3},
            {"startTime": START, "failed": 2},
            [
                "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
                "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
                "status.failed: Invalid value: 2: cannot decrease the failed counter",
            ],
        ),
        (
            {"startTime": START},
            {"startTime": "2024-05-01T00:00:00Z"},
            [
                'status.startTime: Invalid value: "2024-05-01T00:00:00Z": field is immutable for unsuspended job '
                "once set"
            ],
        ),
        (
            {},
            {"completedIndexes": "0", "failedIndexes": "0"},
            [
                'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode",
                'status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when '
                "backoffLimitPerIndex is "
                "null",
                'status.failedIndexes: Invalid value: "0": failedIndexes and completedIndexes overlap at index: 0',
            ],
        ),
        (
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
    ],
)
def test_reports(before: Object, after: Object, expected: list[str]) -> None:
    job = created({"completions": 1})
    errs = JobStatusStrategy().validate_update(CTX, {**job, "status": after}, {**job, "status": before})
    assert [str(e) for e in errs] == expected


def test_a_error_that_was_there_before_does_not_hinder_other_reports() -> None:
    job = created()
    broken = {"ready": 5}
    errs = JobStatusStrategy().validate_update(
        CTX, {**job, "status": {**broken, "failed": 1}}, {**job, "status": broken}
    )
    assert errs == []


def test_columns() -> None:
    job = created({"parallelism": 4, "completions": None})
    job["status"] = {"succeeded": 2, "startTime": START, "completionTime": "2024-01-01T00:01:40Z"}
    cells = {column.name: column.cell(job) for column in STRATEGY.columns}
    assert (cells["Status"], cells["Completions"], cells["Duration"]) == ("Running", "2/1 of 4", "100s")
    job["status"]["conditions"] = [condition("Suspended"), condition("Failed", "False")]
    assert STRATEGY.columns[1].cell(job) == "Suspended"


def test_field_selectors() -> None:
    assert STRATEGY.fields({"status": {"succeeded": 3}}) == {"status.successful": "3"}
    assert STRATEGY.convert_field("status.successful", "1") == ("status.successful", "1")
    with pytest.raises(ValueError, match=r"not supported for Job$"):
        STRATEGY.convert_field("spec.x", "1")


def test_deleting_without_a_policy_is_warned_about() -> None:
    assert STRATEGY.warnings_on_delete(CTX, True) == []
    assert STRATEGY.warnings_on_delete(CTX, False)[0].startswith("child pods are preserved by default")
    assert STRATEGY.deletion_rules.orphans_by_default
