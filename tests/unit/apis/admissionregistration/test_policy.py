import copy

import pytest

from pilothouse.apis import types
from pilothouse.apis.admissionregistration import policy as policies
from pilothouse.apis.admissionregistration import rules
from pilothouse.apis.admissionregistration.expressions import Expression
from pilothouse.apis.admissionregistration.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

KINDS = {
    "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
    "mutatingadmissionpolicies": "MutatingAdmissionPolicy",
    "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings": "MutatingAdmissionPolicyBinding",
}
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
MATCH = {"resourceRules": [RULE]}
VALIDATING = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
MUTATING = {
    "matchConstraints": MATCH,
    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}],
    "reinvocationPolicy": "Never",
}


def made(resource: str, spec: Object) -> Object:
    struct = types.struct(f"admissionregistration.v1.{KINDS[resource]}")
    obj = decode(struct, copy.deepcopy({"metadata": {"name": "p"}, "spec": spec}))[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(resource: str, spec: Object) -> list[str]:
    return [str(error) for error in STRATEGIES[resource]().validate(Context(), made(resource, spec))]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (VALIDATING, []),
        (
            {},
            [
                "spec.matchConstraints: Required value",
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        (
            {**VALIDATING, "paramKind": {"apiVersion": "a/b/c", "kind": "1"}, "failurePolicy": "Panic"},
            [
                'spec.failurePolicy: Unsupported value: "Panic": supported values: "Fail", "Ignore"',
                'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                'spec.paramKind.kind: Invalid value: "1": may have mixed case, but should otherwise match: a '
                "DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
                "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
        (
            {**VALIDATING, "variables": [{"name": "in", "expression": ""}]},
            [
                'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
                "spec.variables[0].expression: Required value: expression is not specified",
            ],
        ),
        (
            {
                **VALIDATING,
                "validations": [{"expression": " ", "message": " ", "reason": "Odd", "messageExpression": " "}],
            },
            [
                "spec.validations[0].expression: Required value: expression is not specified",
                'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
                'spec.validations[0].message: Invalid value: " ": must be non-empty if specified',
                'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", '
                '"Invalid", "RequestEntityTooLarge"',
            ],
        ),
        (
            {
                **VALIDATING,
                "auditAnnotations": [{"key": "a", "valueExpression": "'x'"}, {"key": "a", "valueExpression": ""}],
            },
            [
                "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                'spec.auditAnnotations[1].key: Duplicate value: "a"',
            ],
        ),
    ],
)
def test_validating_policies(spec: Object, expected: list[str]) -> None:
    assert errors_of("validatingadmissionpolicies", spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (MUTATING, []),
        (
            {"matchConstraints": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}},
            [
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported '
                'values: "*", "CONNECT", "CREATE", "UPDATE"',
                "spec.mutations: Required value: mutations must contain at least one item",
                "spec.reinvocationPolicy: Required value",
            ],
        ),
        (
            {
                **MUTATING,
                "mutations": [
                    {"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "x"}},
                    {"patchType": "X"},
                ],
            },
            [
                "spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is "
                "ApplyConfiguration",
                'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when '
                "patchType is ApplyConfiguration",
                'spec.mutations[1].patchType: Unsupported value: "X": supported values: "ApplyConfiguration", '
                '"JSONPatch"',
            ],
        ),
    ],
)
def test_mutating_policies(spec: Object, expected: list[str]) -> None:
    assert errors_of("mutatingadmissionpolicies", spec) == expected


@pytest.mark.parametrize(
    ("variable", "expression", "expected"),
    [
        ("1", "variables.v == 1", []),
        ("1", "variables.v == 'a'", ["spec.validations[0].expression"]),
        # Nothing is known of a type that is no plain value, list or map, nor of a variable that is wrong itself.
        ("quantity('1')", "variables.v == 1", []),
        ("type(1)", "variables.v + 'a' == 'b'", []),
        ("nothing", "variables.v == 1", ["spec.variables[0].expression"]),
        ("", "variables.v == 1", ["spec.variables[0].expression", "spec.validations[0].expression"]),
        # Patches are made in mutations only.
        ("Object{}", "true", ["spec.variables[0].expression"]),
    ],
)
def test_types_of_variables(variable: str, expression: str, expected: list[str]) -> None:
    variables = [{"name": "v", "expression": variable}]
    found = errors_of(
        "validatingadmissionpolicies",
        {**VALIDATING, "variables": variables, "validations": [{"expression": expression}]},
    )
    assert [error.partition(": ")[0] for error in found] == expected


def test_mutations_may_always_speak_of_variables() -> None:
    wrong = [{"patchType": "JSONPatch", "jsonPatch": {"expression": "variables.v"}}]
    assert "undefined field 'v'" in errors_of("mutatingadmissionpolicies", {**MUTATING, "mutations": wrong})[0]
    wrong = [{"expression": "variables.v"}]
    found = errors_of("validatingadmissionpolicies", {**VALIDATING, "validations": wrong})
    assert "undeclared reference to 'variables'" in found[0]


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        ("validatingadmissionpolicybindings", {"policyName": "p", "validationActions": ["Deny"]}, []),
        (
            "validatingadmissionpolicybindings",
            {},
            ["spec.policyName: Required value", "spec.validationActions: Required value"],
        ),
        (
            "validatingadmissionpolicybindings",
            {
                "policyName": "p",
                "validationActions": ["Deny", "Warn", "Deny"],
                "paramRef": {"name": "a", "selector": {}},
            },
            [
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
                'spec.validationActions[2]: Duplicate value: "Deny"',
                'spec.validationActions: Invalid value: ["Deny","Warn","Deny"]: must not contain both Deny and '
                "Warn (repeating the same validation failure information in the API response and headers "
                "serves no purpose)",
            ],
        ),
        ("mutatingadmissionpolicybindings", {"policyName": "p"}, []),
        ("mutatingadmissionpolicybindings", {}, ["spec.policyName: Required value"]),
    ],
)
def test_bindings(resource: str, spec: Object, expected: list[str]) -> None:
    assert errors_of(resource, spec) == expected


def test_every_expression_reaches_the_compiler_with_what_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Expression] = []
    variables: list[list[str]] = []

    def record(expressions: list[Expression]) -> list[object]:
        seen.extend(expressions)
        variables.extend([] if one.variables is None else list(one.variables.types()) for one in expressions)
        return []

    monkeypatch.setattr(policies, "compile_expressions", record)
    monkeypatch.setattr(rules, "compile_expressions", record)
    spec = {
        **VALIDATING,
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "m", "expression": " 1 "}],
        "variables": [{"name": "v", "expression": "2"}],
        "validations": [{"expression": "3", "messageExpression": "4"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "5"}],
    }
    old = made("validatingadmissionpolicies", {**VALIDATING, "validations": [{"expression": "3"}]})
    policies.validate_validating_policy(made("validatingadmissionpolicies", spec), old)
    assert [(e.text, e.purpose, e.stored) for e in seen] == [
        ("1", "matchCondition", False),
        ("2", "variable", False),
        ("3", "validation", True),
        ("4", "message", False),
        ("5", "auditAnnotation", False),
    ]
    assert all(e.has_params for e in seen)
    assert [e.has_authorizer for e in seen] == [True, True, True, False, True]
    assert variables == [[], [], *[["v"]] * 3]


def test_status_of_a_policy() -> None:
    obj = made("validatingadmissionpolicies", VALIDATING)
    obj["status"] = {
        "typeChecking": {
            "expressionWarnings": [{"fieldRef": " ", "warning": ""}, {"fieldRef": " a* > 1", "warning": "w"}]
        }
    }
    status = STRATEGIES["validatingadmissionpolicies"].subresources["status"]()
    found = status.validate_update(Context(), obj, made("validatingadmissionpolicies", VALIDATING))
    assert [str(error) for error in found] == [
        "status.typeChecking.expressionWarnings[0].warning: Required value",
        "status.typeChecking.expressionWarnings[0].fieldRef: Required value",
        'status.typeChecking.expressionWarnings[1].fieldRef: Invalid value: "a* > 1": invalid JSONPath: unrecognized '
        "character in action: U+003E '>'",
    ]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (None, "<unset>"),
        ({"name": "a"}, "*/a"),
        ({"name": "a", "namespace": "n"}, "n/a"),
        (
            {
                "selector": {
                    "matchLabels": {"b": "c"},
                    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
                }
            },
            "&LabelSelector{MatchLabels:map[string]string{b: "
            "c,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[v],},},}",
        ),
    ],
)
def test_bindings_show_their_parameters(ref: Object | None, expected: str) -> None:
    strategy = STRATEGIES["validatingadmissionpolicybindings"]
    obj = made("validatingadmissionpolicybindings", {"paramRef": ref} if ref else {})
    assert strategy.columns[2].cell(obj) == expected
