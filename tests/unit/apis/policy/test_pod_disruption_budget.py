from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.policy.index import STRATEGIES
from pilothouse.apis.policy.pod_disruption_budget import BudgetStatusStrategy
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

MARKER = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
strategy = STRATEGIES["poddisruptionbudgets"]()


def made(spec: Object, status: Object | None = None) -> Object:
    body = {"spec": spec, "status": status or {}}
    return decode(types.struct("policy.v1.PodDisruptionBudget"), body)[0]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": "50%"}, []),
        ({"maxUnavailable": 0}, []),
        ({"minAvailable": -1}, ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]),
        ({"minAvailable": "101%"}, ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%']),
        (
            {"unhealthyPodEvictionPolicy": "Never"},
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", '
                '"IfHealthyBudget"'
            ],
        ),
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
            ],
        ),
    ],
)
def test_errors_of_a_spec(spec: Object, expected: list[str]) -> None:
    assert [str(error) for error in strategy.validate(Context(), made(spec))] == expected


def test_a_new_budget_starts_with_an_empty_status() -> None:
    obj = made({}, {"disruptionsAllowed": 3})
    strategy.prepare_for_create(Context(), obj)
    assert obj == made({})
    assert obj["status"]["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchExpressions": [{"key": MARKER, "operator": "Exists"}]}, None),
        (
            {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": MARKER, "operator": "Exists"}]},
            {"matchLabels": {"a": "b"}},
        ),
        ({"matchExpressions": [{"key": MARKER, "operator": "DoesNotExist"}]}, {}),
    ],
)
def test_old_markers_go_unless_they_are_all_there_is(selector: Object, expected: Object | None) -> None:
    obj = made({"selector": selector})
    strategy.prepare_for_create(Context(), obj)
    assert obj["spec"]["selector"] == (selector if expected is None else expected)


def test_counts_of_the_status_are_not_negative() -> None:
    obj = made({}, {"currentHealthy": -1, "conditions": [{"type": "A", "status": "True"}]})
    found = [str(error) for error in BudgetStatusStrategy().validate_update(Context(), obj, made({}))]
    assert found == [
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Required value",
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_metadata_is_judged_last_and_by_the_rules_for_any_object(kind: Any) -> None:
    budgets = kind("policy/v1", "poddisruptionbudgets")
    odd = {"name": "Not_A_Subdomain", "finalizers": ["unqualified"]}
    assert budgets.errors({"metadata": odd, "spec": {"minAvailable": 1}}) == []
    assert budgets.errors({"metadata": {"name": "a%"}, "spec": {"minAvailable": -1}}) == [
        "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"
    ]
    assert budgets.errors({"metadata": {"name": "a%"}}) == ["metadata.name: Invalid value: \"a%\": may not contain '%'"]
