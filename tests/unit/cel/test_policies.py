from typing import Any

import pytest

from pilothouse.cel.library.authorizing import AccessCheck, Authorizer, Decision, ResourceCheck
from pilothouse.cel.library.patches import JSON_PATCH_TYPE, OBJECT_TYPE, misnamed, to_json, to_native
from pilothouse.cel.policies import LazyVariables, PolicyError, compile_expression, policy_environment
from pilothouse.cel.types import BOOL, INT, NULL, STRING, list_of
from pilothouse.cel.values import EvaluationError

POLICY = policy_environment(params=True, authorizer=True, variables={"owner": STRING})
MUTATION = policy_environment(patches=True)


@pytest.mark.parametrize(
    ("text", "types", "wanted"),
    [
        ("object.metadata.name", (BOOL,), "must evaluate to bool but got dyn"),
        ("1", (STRING, NULL), "must evaluate to one of [string null_type] but got int"),
        ("request.foo", (BOOL,),
         "compilation failed: ERROR: <input>:1:8: undefined field 'foo'\n | request.foo\n | .......^"),
        ("variables.b", (),
         "compilation failed: ERROR: <input>:1:10: undefined field 'b'\n | variables.b\n | .........^"),
        ("int('x') == 1", (BOOL,), "program instantiation failed: type conversion error from 'string' to 'int'"),
    ],
)  # fmt: skip
def test_refusals(text: str, types: Any, wanted: str) -> None:
    with pytest.raises(PolicyError) as caught:
        compile_expression(POLICY, text, types)
    assert str(caught.value) == wanted


@pytest.mark.parametrize(
    ("text", "types", "wanted"),
    [
        ("[]", (list_of(JSON_PATCH_TYPE),), "must evaluate to list(JSONPatch) but got list(dyn)"),
        ("{'a': 1}", (OBJECT_TYPE,), "must evaluate to Object but got map(string, int)"),
        ("[JSONPatch{opp: 'add'}]", (),
         "compilation failed: ERROR: <input>:1:15: expected type of field 'opp' is '' but provided type is 'string'"
         "\n | [JSONPatch{opp: 'add'}]\n | ..............^"),
    ],
)  # fmt: skip
def test_refused_mutations(text: str, types: Any, wanted: str) -> None:
    with pytest.raises(PolicyError) as caught:
        compile_expression(MUTATION, text, types)
    assert str(caught.value) == wanted


def test_variables_and_params_are_only_there_when_declared() -> None:
    for name in ("variables", "params", "authorizer"):
        with pytest.raises(PolicyError, match=f"undeclared reference to '{name}'"):
            compile_expression(policy_environment(), name, ())


def test_patches_become_json() -> None:
    text = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: {'n': [b'x']}}]"
    value = compile_expression(MUTATION, text, (list_of(JSON_PATCH_TYPE),)).evaluate({}).value
    assert to_json(value) == [{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": {"n": ["eA=="]}}]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("9007199254740991", 9007199254740991),
        ("9007199254740992", "9007199254740992"),
        ("[18446744073709551615u]", ["18446744073709551615"]),
        ("type(1)", "type conversion not supported for 'type'"),
        ("quantity('1')", "type conversion error from 'Quantity' to '*structpb.Value'"),
        ("{'a': optional.none()}", "optional.none() dereference"),
        ("{1: 'a'}", "unsupported type conversion from 'int' to string"),
        ("{true: 'a'}", "type conversion error from bool to 'string'"),
        ("0.0 / 0.0", "json: error calling MarshalJSON for type *structpb.Value: "
         "proto: google.protobuf.Value.number_value: invalid NaN value"),
    ],
)  # fmt: skip
def test_values_of_patches_are_json_or_refused(text: str, wanted: Any) -> None:
    expression = f"[JSONPatch{{op: 'add', path: '/a', value: {text}}}]"
    value = compile_expression(MUTATION, expression, (list_of(JSON_PATCH_TYPE),)).evaluate({}).value
    try:
        shown = to_json(value)[0]["value"]
    except EvaluationError as error:
        shown = str(error)
    assert shown == wanted


def test_types_are_named_in_apply_configurations() -> None:
    value = compile_expression(MUTATION, "Object{data: {'a': dyn(type(1)), 'b': dyn(2u)}}", (OBJECT_TYPE,))
    assert to_native(value.evaluate({}).value) == {"data": {"a": "int", "b": 2}}


def test_objects_are_named_by_their_path() -> None:
    text = "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.wrong{?x: optional.none()}}"
    value = compile_expression(MUTATION, text, (OBJECT_TYPE,)).evaluate({}).value
    assert to_json(value) == {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    assert misnamed(value, ("Object",)) == [
        'unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object'
        " type"
    ]


def test_variables_are_computed_once_and_only_if_needed() -> None:
    calls: list[str] = []

    def compute() -> str:
        calls.append("owner")
        return "me"

    program = compile_expression(POLICY, "object.x || variables.owner == 'me' && variables.owner != 'you'", (BOOL,))
    variables = LazyVariables({"owner": compute})
    assert program.evaluate({"object": {"x": True}, "variables": variables}).value is True
    assert calls == []
    assert program.evaluate({"object": {"x": False}, "variables": variables}).value is True
    assert calls == ["owner"]


def test_errors_of_variables_are_remembered() -> None:
    calls: list[int] = []

    def compute() -> str:
        calls.append(1)
        raise EvaluationError("no such key: a")

    program = compile_expression(POLICY, "variables.owner == 'me'", (BOOL,))
    variables = LazyVariables({"owner": compute})
    for _ in range(2):
        with pytest.raises(EvaluationError, match="no such key: a"):
            program.evaluate({"variables": variables})
    assert calls == [1]


def test_access_checks_reach_the_decider() -> None:
    asked: list[AccessCheck] = []

    def decide(check: AccessCheck) -> Decision:
        asked.append(check)
        return Decision(check.verb == "get", "because")

    bindings = {
        "authorizer": Authorizer(decide, AccessCheck()),
        "authorizer.requestResource": ResourceCheck(decide, AccessCheck(resource="pods", namespace="ns")),
    }
    text = (
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('a').name('b')"
        ".fieldSelector('x=y').labelSelector('l').check('get').allowed()"
        " && authorizer.path('/metrics').check('get').reason() == 'because'"
        " && !authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('list').allowed()"
        " && authorizer.requestResource.check('get').allowed()"
    )
    result = compile_expression(POLICY, text, (BOOL,)).evaluate(bindings, limit=10_000_000)
    assert result.value is True
    assert result.cost > 4 * 350_000
    assert asked == [
        AccessCheck(None, "", "apps", "deployments", "scale", "a", "b", "x=y", "l", "get"),
        AccessCheck(path="/metrics", verb="get"),
        AccessCheck(user=("ns", "sa"), resource="pods", verb="list"),
        AccessCheck(resource="pods", namespace="ns", verb="get"),
    ]


def test_three_access_checks_exceed_the_limit() -> None:
    text = " && ".join(["authorizer.requestResource.check('get').allowed()"] * 3)
    check = ResourceCheck(lambda check: Decision(True), AccessCheck())
    with pytest.raises(EvaluationError, match="actual cost limit exceeded"):
        compile_expression(POLICY, text, (BOOL,)).evaluate({"authorizer.requestResource": check})


def test_a_decider_that_must_wait_is_not_mistaken_for_a_failure() -> None:
    class Waiting(Exception):
        pass

    def decide(check: AccessCheck) -> Decision:
        raise Waiting

    program = compile_expression(POLICY, "authorizer.requestResource.check('get').allowed() || true", (BOOL,))
    with pytest.raises(Waiting):
        program.evaluate({"authorizer.requestResource": ResourceCheck(decide, AccessCheck())})


def test_types_of_policy_variables() -> None:
    assert compile_expression(POLICY, "request.userInfo.groups.size()", (INT,)).type == INT
