"""Type checking of policies: which kinds are looked at, and what is said about expressions."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.policies.type_checking import TypeChecker
from pilothouse.admission.versions import ServedVersions
from pilothouse.machinery.objects import Object

DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


@pytest.fixture(scope="module")
def checker() -> TypeChecker:
    return TypeChecker(ServedVersions())


def spec(*expressions: str, rules: Any = (DEPLOYMENTS,), **more: Any) -> Object:
    validations = [{"expression": each} for each in expressions]
    return {"matchConstraints": {"resourceRules": list(rules)}, "validations": validations, **more}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], []),
        ([DEPLOYMENTS], ["apps/v1, Kind=Deployment"]),
        ([DEPLOYMENTS, PODS], ["/v1, Kind=Pod", "apps/v1, Kind=Deployment"]),
        ([{**DEPLOYMENTS, "resources": ["*"]}], []),
        ([{**DEPLOYMENTS, "resources": ["deployments/status", "*/scale"]}], []),
        ([{**DEPLOYMENTS, "apiGroups": ["*"]}], []),
        ([{**DEPLOYMENTS, "apiVersions": ["v1", "*"]}], []),
        ([{**DEPLOYMENTS, "resources": ["unknown", "replicasets"]}], ["apps/v1, Kind=ReplicaSet"]),
        ([{**PODS, "resources": ["events"]}], ["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"]),
    ],
)
def test_kinds(checker: TypeChecker, rules: list[Object], expected: list[str]) -> None:
    assert [str(kind) for kind in checker.kinds(spec(rules=rules))] == expected


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object.metadata.labels['a'] == 'b' && oldObject == null",
        "object.spec.template.spec.containers.all(c, c.name != '')",
        "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "namespaceObject.metadata.name == request.namespace",
        "object.spec.strategy.rollingUpdate.maxSurge == 1",
    ],
)
def test_what_fits(checker: TypeChecker, expression: str) -> None:
    assert checker.check(spec(expression)) == []


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("object.foo > 1", "undefined field 'foo'"),
        ("object.spec.replicas == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("request.nothing == 1", "undefined field 'nothing'"),
        ("params.x == 1", "undeclared reference to 'params'"),
        ("authorizer.requestResource.check('get').allowed()", "unexpected failed resolution of"),
    ],
)
def test_what_does_not_fit(checker: TypeChecker, expression: str, said: str) -> None:
    (warning,) = checker.check(spec("true", expression))
    assert warning["fieldRef"] == "spec.validations[1].expression"
    assert warning["warning"].startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:")
    assert said in warning["warning"]
    assert warning["warning"].endswith("\n")


def test_every_kind_has_its_say(checker: TypeChecker) -> None:
    (warning,) = checker.check(spec("object.spec.replicas > 1 && object.foo", rules=(DEPLOYMENTS, PODS)))
    first, second = warning["warning"].split("\n\n")
    assert first.startswith("/v1, Kind=Pod: ERROR")
    assert "undefined field 'replicas'" in first
    assert second.startswith("apps/v1, Kind=Deployment: ERROR")


def test_variables_params_and_messages(checker: TypeChecker) -> None:
    variables = [
        {"name": "count", "expression": "object.spec.replicas"},
        {"name": "odd", "expression": "object.nothing"},
    ]
    policy = spec("variables.count == 'x'", "variables.odd == 'x'", "params.data.foo == 1", variables=variables)
    policy["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    policy["validations"][1]["messageExpression"] = "object.foo"
    assert [each["fieldRef"] for each in checker.check(policy)] == [
        "spec.validations[0].expression",
        "spec.validations[1].messageExpression",
        "spec.validations[2].expression",
    ]
    policy["paramKind"]["kind"] = "Unknown"
    assert len(checker.check(policy)) == 2


def test_types_that_contain_themselves(checker: TypeChecker) -> None:
    definitions = {
        "apiGroups": ["apiextensions.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["customresourcedefinitions"],
    }
    assert checker.check(spec("object.spec.versions.all(v, v.served)", rules=(definitions,))) == []
