import copy

import pytest

from pilothouse.apis import types
from pilothouse.apis.flowcontrol.index import STRATEGIES
from pilothouse.apis.flowcontrol.mandatory import FLOW_SCHEMAS, PRIORITY_LEVELS
from pilothouse.apis.flowcontrol.status import FlowControlStatusStrategy
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

KINDS = {"flowschemas": "FlowSchema", "prioritylevelconfigurations": "PriorityLevelConfiguration"}


def made(resource: str, name: str, spec: Object) -> Object:
    struct = types.struct(f"flowcontrol.v1.{KINDS[resource]}")
    obj = decode(struct, copy.deepcopy({"metadata": {"name": name}, "spec": spec}))[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(resource: str, name: str, spec: Object) -> list[str]:
    return [str(error) for error in STRATEGIES[resource]().validate(Context(), made(resource, name, spec))]


RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
SUBJECT = {"kind": "User", "user": {"name": "*"}}
SCHEMA = {"priorityLevelConfiguration": {"name": "p"}, "rules": [{"subjects": [SUBJECT], "resourceRules": [RULE]}]}


@pytest.mark.parametrize(("name", "spec"), [*FLOW_SCHEMAS.items(), ("mine", SCHEMA)])
def test_good_flow_schemas(name: str, spec: Object) -> None:
    assert errors_of("flowschemas", name, spec) == []


@pytest.mark.parametrize(("name", "spec"), PRIORITY_LEVELS.items())
def test_the_mandatory_levels_are_fine(name: str, spec: Object) -> None:
    assert errors_of("prioritylevelconfigurations", name, spec) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"matchingPrecedence": 1},
            ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
        ),
        (
            {"matchingPrecedence": 10001},
            ["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
        ),
        (
            {"distinguisherMethod": {"type": "X"}},
            [
                'spec.distinguisherMethod.type: Unsupported value: {"Type":"X"}: supported values: '
                '"ByNamespace", "ByUser"'
            ],
        ),
        (
            {"priorityLevelConfiguration": {}, "rules": [{}]},
            [
                "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
                "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ],
        ),
        (
            {
                "rules": [
                    {
                        "subjects": [{"kind": "User", "group": {"name": "g"}}],
                        "nonResourceRules": [{"verbs": ["*", "get"], "nonResourceURLs": ["a", "/b//c", "/d*"]}],
                    }
                ]
            },
            [
                "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
                "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
                'spec.rules[0].nonResourceRules[0].verbs: Invalid value: ["*","get"]: if \'*\' is present, '
                "must not specify other verbs",
                'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "a": must start with slash',
                'spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/b//c": must not '
                "contain double slash",
                'spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: Invalid value: "/d*": wildcard can only '
                "do suffix matching",
            ],
        ),
        (
            {"rules": [{"subjects": [SUBJECT], "resourceRules": [{**RULE, "verbs": ["fly"], "namespaces": []}]}]},
            [
                'spec.rules[0].resourceRules[0].verbs: Unsupported value: ["fly"]: supported values: "create", '
                '"delete", '
                '"deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
                "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not "
                "cluster scoped must "
                "supply at least one namespace",
            ],
        ),
    ],
)
def test_errors_of_flow_schemas(change: Object, expected: list[str]) -> None:
    assert errors_of("flowschemas", "mine", {**SCHEMA, **change}) == expected


def test_a_mandatory_schema_is_fixed() -> None:
    [found] = errors_of("flowschemas", "catch-all", {**FLOW_SCHEMAS["catch-all"], "matchingPrecedence": 5})
    assert found.endswith("spec of 'catch-all' must equal the fixed value")


QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": QUEUING}}}, []),
        (
            {},
            ["spec.type: Required value"],
        ),
        (
            {"type": "Limited", "exempt": {}},
            ["spec.exempt: Forbidden", "spec.limited: Required value"],
        ),
        (
            {"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {}}}},
            ["spec.limited.limitResponse.queuing: Forbidden"],
        ),
        ({"type": "Limited", "limited": {"limitResponse": {}}}, ["spec.limited.limitResponse.type: Required value"]),
        (
            {
                "type": "Limited",
                "limited": {
                    "lendablePercent": 101,
                    "limitResponse": {"type": "Queue", "queuing": {**QUEUING, "handSize": 70}},
                },
            },
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 70: should not be greater than "
                "queues (64)",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            ],
        ),
        (
            {
                "type": "Limited",
                "limited": {"limitResponse": {"type": "Queue", "queuing": {**QUEUING, "handSize": 11}}},
            },
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 11: required entropy bits of "
                "deckSize 64 and "
                "handSize 11 should not be greater than 60"
            ],
        ),
        ({"type": "Odd"}, ['spec.type: Unsupported value: "Odd": supported values: "Exempt", "Limited"']),
    ],
)
def test_priority_levels(spec: Object, expected: list[str]) -> None:
    assert errors_of("prioritylevelconfigurations", "mine", spec) == expected


def test_what_the_exempt_level_lends_may_change() -> None:
    spec = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 5, "lendablePercent": 50}}
    assert errors_of("prioritylevelconfigurations", "exempt", spec) == []
    found = errors_of(
        "prioritylevelconfigurations", "exempt", {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    )
    assert found[-1].endswith("except the 'spec.exempt' field must equal the fixed value")


def test_defaults_of_a_level() -> None:
    level = made(
        "prioritylevelconfigurations",
        "p",
        {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
    )
    assert level["spec"]["limited"] == {
        "nominalConcurrencyShares": 30,
        "limitResponse": {"type": "Queue", "queuing": QUEUING},
        "lendablePercent": 0,
    }


def test_status_writes_keep_all_other_metadata() -> None:
    old = made("flowschemas", "f", SCHEMA)
    obj = {**old, "metadata": {"name": "f", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}, "spec": {}}
    FlowControlStatusStrategy().prepare_for_update(Context(), obj, old)
    assert obj["spec"] == old["spec"]
    assert obj["metadata"] == {"name": "f", "managedFields": [{"manager": "m"}]}
