import pytest

from pilothouse.apis import types
from pilothouse.apis.scheduling.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

TYPES = {
    "priorityclasses": "scheduling.v1.PriorityClass",
    "podgroups": "scheduling.v1beta1.PodGroup",
    "compositepodgroups": "scheduling.v1alpha3.CompositePodGroup",
    "workloads": "scheduling.v1beta1.Workload",
}


def made(resource: str, body: Object) -> Object:
    struct = types.struct(TYPES[resource])
    obj = decode(struct, body)[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(resource: str, body: Object, old: Object | None = None) -> list[str]:
    strategy, obj = STRATEGIES[resource](), made(resource, body)
    if old is None:
        strategy.prepare_for_create(Context(), obj)
        found = strategy.validate(Context(), obj)
    else:
        before = made(resource, old)
        strategy.prepare_for_update(Context(), obj, before)
        found = strategy.validate_update(Context(), obj, before)
    assert decode(types.struct(TYPES[resource]), obj)[0] == obj
    return [str(error) for error in found]


RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"value": 1_000_000_000}, []),
        (
            {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        ({"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}, []),
        (
            {"metadata": {"name": "system-node-critical"}, "value": 1},
            [RESERVED + "value of system-node-critical PriorityClass must be 2000001000"],
        ),
        (
            {"metadata": {"name": "system-cluster-critical"}, "value": 2_000_000_000, "globalDefault": True},
            [RESERVED + "globalDefault of system-cluster-critical PriorityClass must be false"],
        ),
        ({"metadata": {"name": "system-x"}}, [RESERVED + "system-x is not a known system priority class"]),
        (
            {"preemptionPolicy": "Sometimes"},
            ['preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"'],
        ),
    ],
)
def test_priority_classes(body: Object, expected: list[str]) -> None:
    assert errors_of("priorityclasses", body) == expected


def test_neither_value_nor_policy_of_a_priority_class_changes() -> None:
    found = errors_of("priorityclasses", {"value": 2, "preemptionPolicy": "Never"}, {"value": 1})
    assert found == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    ]
    found = errors_of("priorityclasses", {"value": 1, "preemptionPolicy": "\0"}, {"value": 1})
    assert 'preemptionPolicy: Invalid value: "\\u0000": field is immutable' in found


GROUP = {"schedulingPolicy": {"gang": {"minCount": 2}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (GROUP, []),
        ({}, ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {}}, "priority": 2_000_000_000},
            [
                'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
                "spec.schedulingPolicy.gang.minCount: Required value",
                "spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            ],
        ),
        ({**GROUP, "workloadRef": {"workloadName": "w"}}, ["spec.workloadRef.templateName: Required value"]),
        ({**GROUP, "resourceClaims": [{"name": "BAD"}], "preemptionPolicy": "Bad"}, []),
    ],
)
def test_pod_groups(spec: Object, expected: list[str]) -> None:
    assert errors_of("podgroups", {"spec": spec}) == expected


def test_pod_groups_keep_their_policy() -> None:
    old = {"spec": GROUP}
    assert errors_of("podgroups", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}, old) == []
    assert errors_of("podgroups", {"spec": {"schedulingPolicy": {"basic": {}}, "priority": 1}}, old) == [
        "spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
        "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
        "spec.priority: Invalid value: null: field is immutable",
    ]


def test_workloads_keep_their_templates() -> None:
    old = {"spec": {"podGroupTemplates": [{"name": "a", **GROUP}]}}
    assert errors_of("workloads", old) == []
    assert errors_of("workloads", {"spec": {"podGroupTemplates": [{"name": "b", **GROUP}]}}, old) == [
        "spec.podGroupTemplates[0]: Forbidden: item may not be added",
        "spec.podGroupTemplates: Forbidden: item may not be removed",
    ]
    assert errors_of("workloads", {"spec": {}}) == [
        'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'
    ]


def test_groups_of_groups_need_a_workload() -> None:
    policy = {"schedulingPolicy": {"basic": {}}}
    assert errors_of("compositepodgroups", {"spec": policy}) == ["spec.workloadRef: Required value"]
    whole = {**policy, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    assert errors_of("compositepodgroups", {"spec": whole}) == []
    assert errors_of("podgroups", {"spec": policy}) == []
