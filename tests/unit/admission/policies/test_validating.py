"""Validating policies: bindings, params, messages, actions, failures and access checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.validating_admission_policy import ValidatingAdmissionPolicy
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Object

POLICIES = "admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*"}
KIND = GroupVersionKind("", "v1", "ConfigMap")


class World:
    """A server with policies, and requests to it."""

    def __init__(self, environment: Environment, put: Any, make_request: Callable[..., Attributes]) -> None:
        self.plugin = ValidatingAdmissionPolicy(environment)
        self.put, self._make_request = put, make_request

    async def policy(self, name: str = "p", *, rule: Object | None = None, **spec: Any) -> None:
        constraints = {"resourceRules": [{**RULE, **(rule or {})}], "matchPolicy": "Equivalent"}
        await self.put(POLICIES, name, spec={"matchConstraints": constraints, "failurePolicy": "Fail", **spec})

    async def binding(self, name: str = "b", **spec: Any) -> None:
        await self.put(BINDINGS, name, spec={"policyName": "p", "validationActions": ["Deny"], **spec})

    def request(self, name: str = "x", **more: Any) -> Attributes:
        data = more.pop("data", {"k": "v"})
        obj = {"metadata": {"name": name, "namespace": "ns", **more.pop("metadata", {})}, "data": data}
        return self._make_request("/v1/configmaps", obj, kind=KIND, **more)


@pytest.fixture
async def world(environment: Environment, put: Any, make_request: Callable[..., Attributes]) -> World:
    await put("/v1/namespaces", "ns", metadata={"labels": {"team": "a"}})
    return World(environment, put, make_request)


def why(error: Any) -> str:
    return str(error.message).partition(" denied request: ")[2]


@pytest.mark.parametrize(
    ("validation", "code", "reason", "said"),
    [
        ({"expression": "false"}, 422, "Invalid", "failed expression: false"),
        ({"expression": "1 > 2", "message": " no \n"}, 422, "Invalid", "no"),
        ({"expression": "false", "reason": "Forbidden"}, 403, "Forbidden", "failed expression: false"),
        ({"expression": "false", "reason": "RequestEntityTooLarge"}, 413, "RequestEntityTooLarge", "failed expr"),
        ({"expression": "false", "messageExpression": "'is ' + object.metadata.name"}, 422, "Invalid", "is x"),
        ({"expression": "false", "messageExpression": "'a\\nb'", "message": "plain"}, 422, "Invalid", "plain"),
        ({"expression": "false", "messageExpression": "object.zz", "message": "plain"}, 422, "Invalid", "plain"),
        (
            {"expression": "object.zz == 1"},
            422,
            "Invalid",
            "expression 'object.zz == 1' resulted in error: no such key",
        ),
        (
            {"expression": "oops"},
            422,
            "Invalid",
            "compilation error: compilation failed: ERROR: <input>:1:1: undeclared",
        ),
        ({"expression": "namespaceObject.metadata.labels.team == 'b'"}, 422, "Invalid", "failed expression: namesp"),
    ],
)
async def test_what_a_refusal_says(
    world: World, refused: Any, validation: Object, code: int, reason: str, said: str
) -> None:
    await world.policy(validations=[{"expression": "true"}, validation])
    await world.binding()
    error = await refused(world.plugin.validate(world.request()))
    assert (error.code, error.reason) == (code, reason)
    assert error.message.startswith("configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b'")
    assert why(error).startswith(said)
    assert error.details["causes"] == [{"message": error.message.partition(" is forbidden: ")[2]}]


@pytest.mark.parametrize(
    "spec",
    [
        {"validations": [{"expression": "true"}]},
        {"validations": [{"expression": "object.zz == 1"}], "failurePolicy": "Ignore"},
        {"validations": [{"expression": "false"}], "matchConditions": [{"name": "a", "expression": "1 > 2"}]},
        {
            "validations": [{"expression": "false"}],
            "matchConditions": [{"name": "a", "expression": "object.zz == 1"}, {"name": "b", "expression": "false"}],
        },
        {"validations": [{"expression": "false"}], "rule": {"resources": ["secrets"]}},
        {"validations": [{"expression": "false"}], "rule": {"operations": ["DELETE"]}},
        {"validations": [{"expression": "false"}], "rule": {"resourceNames": ["y"]}},
        {"validations": [{"expression": "variables.two == 2"}], "variables": [
            {"name": "one", "expression": "1"}, {"name": "two", "expression": "variables.one + 1"}]},
        {"validations": [{"expression": "true"}], "variables": [{"name": "bad", "expression": "object.zz"}]},
        {"validations": [{"expression": "false"}], "paramKind": {"apiVersion": "x.io/v1", "kind": "X"},
         "failurePolicy": "Ignore"},
    ],
)  # fmt: skip
async def test_what_passes(world: World, spec: Object) -> None:
    await world.policy(**spec)
    await world.binding()
    await world.plugin.validate(world.request())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"matchConditions": [{"name": "a", "expression": "object.zz == 1"}]},
            "expression 'object.zz == 1' resulted in error: no such key: zz",
        ),
        (
            {
                "validations": [{"expression": "variables.v"}],
                "variables": [{"name": "v", "expression": "object.z == 1"}],
            },
            "expression 'variables.v' resulted in error: composited variable \"v\" fails to evaluate: no such key: z",
        ),
        (
            {"paramKind": {"apiVersion": "x.io/v1", "kind": "X"}},
            "failed to configure policy: failed to find resource referenced by paramKind: 'x.io/v1, Kind=X'",
        ),
        (
            {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.zz)"}]},
            "expression 'string(object.zz)' resulted in error: no such key: zz",
        ),
    ],
)
async def test_failures_refuse(world: World, refused: Any, spec: Object, said: str) -> None:
    await world.policy(**spec)
    await world.binding()
    error = await refused(world.plugin.validate(world.request()))
    assert (error.code, why(error)) == (422, said)


async def test_warnings_and_audit_annotations(world: World) -> None:
    note = {"key": "who", "valueExpression": "'user ' + request.userInfo.username"}
    silent = {"key": "nobody", "valueExpression": "null"}
    await world.policy(validations=[{"expression": "true"}, {"expression": "false"}], auditAnnotations=[note, silent])
    await world.binding(validationActions=["Warn", "Audit"])
    attributes = world.request()
    await world.plugin.validate(attributes)
    assert attributes.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false"
    ]
    failures = orjson.loads(attributes.annotations.pop("validation.policy.admission.k8s.io/validation_failure"))
    assert failures == [
        {
            "message": "failed expression: false",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": ["Warn", "Audit"],
        }
    ]
    assert attributes.annotations == {"p/who": "user alice"}


@pytest.mark.parametrize(
    ("selector", "meant"),
    [({"matchLabels": {"team": "a"}}, True), ({"matchLabels": {"team": "b"}}, False), ({}, True)],
)
async def test_bindings_narrow_policies(world: World, refused: Any, selector: Object, meant: bool) -> None:
    await world.policy(validations=[{"expression": "false"}])
    await world.binding(matchResources={"namespaceSelector": selector, "matchPolicy": "Equivalent"})
    if meant:
        await refused(world.plugin.validate(world.request()))
    else:
        await world.plugin.validate(world.request())


async def test_excluded_rules(world: World) -> None:
    constraints = {"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["x"]}]}
    await world.policy(matchConstraints=constraints, validations=[{"expression": "false"}])
    await world.binding()
    await world.plugin.validate(world.request())


PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
CHECK = [{"expression": "object.data.k == params.data.k", "messageExpression": "'wants ' + params.data.k"}]


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (None, "expression 'object.data.k == params.data.k' resulted in error: "),
        ({"name": "good"}, ""),
        ({"name": "bad"}, "wants w"),
        ({"name": "bad", "namespace": "other"}, ""),
        ({"selector": {"matchLabels": {"is": "param"}}}, "wants w"),
        ({"name": "gone", "parameterNotFoundAction": "Allow"}, ""),
        (
            {"name": "gone", "parameterNotFoundAction": "Deny"},
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        ({"selector": {"matchLabels": {"is": "gone"}}, "parameterNotFoundAction": "Allow"}, ""),
    ],
)
async def test_params(world: World, refused: Any, ref: Object | None, said: str) -> None:
    for name, namespace, value in (("good", "ns", "v"), ("bad", "ns", "w"), ("bad", "other", "v")):
        await world.put("/v1/configmaps", name, namespace, data={"k": value}, metadata={"labels": {"is": "param"}})
    await world.policy(paramKind=PARAMS, validations=CHECK)
    await world.binding(paramRef=ref)
    if not said:
        await world.plugin.validate(world.request())
    else:
        error = await refused(world.plugin.validate(world.request()))
        assert why(error).startswith(said)


async def test_params_have_no_managed_fields(world: World) -> None:
    owned = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    await world.put("/v1/configmaps", "good", "ns", data={}, metadata={"managedFields": [owned]})
    await world.policy(paramKind=PARAMS, validations=[{"expression": "!has(params.metadata.managedFields)"}])
    await world.binding(paramRef={"name": "good"})
    await world.plugin.validate(world.request())


@pytest.mark.parametrize(
    ("kind", "ref", "said"),
    [
        (
            PARAMS,
            {"name": "x"},
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
        ),
        (
            {"apiVersion": "v1", "kind": "Node"},
            {"name": "x", "namespace": "ns"},
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
async def test_places_of_params(
    world: World, refused: Any, make_request: Callable[..., Attributes], kind: Object, ref: Object, said: str
) -> None:
    await world.policy(rule={"resources": ["nodes"]}, paramKind=kind, validations=[{"expression": "true"}])
    await world.binding(paramRef=ref)
    node = make_request("/v1/nodes", {"metadata": {"name": "n"}}, namespace="")
    error = await refused(world.plugin.validate(node))
    assert why(error) == f"failed to configure binding: {said}"


async def test_access_checks_are_asked_once(world: World, refused: Any, authorizer: Any) -> None:
    check = "authorizer.group('').resource('secrets').namespace('ns').check('get').allowed()"
    lazy = [{"name": "may", "expression": check}]
    await world.policy(variables=lazy, validations=[{"expression": "variables.may"}, {"expression": check}])
    await world.binding()
    await refused(world.plugin.validate(world.request()))
    assert authorizer.questions == [("get", "secrets", "")]
    authorizer.allowed.add(("get", "secrets", ""))
    await world.plugin.validate(world.request())


async def test_changes_take_effect_at_once(world: World, refused: Any) -> None:
    await world.plugin.validate(world.request())
    await world.policy(validations=[{"expression": "false"}])
    await world.plugin.validate(world.request())
    await world.binding()
    await refused(world.plugin.validate(world.request()))
    await world.policy(validations=[{"expression": "true"}])
    await world.plugin.validate(world.request())


async def test_a_policy_is_compiled_once(world: World) -> None:
    await world.policy(validations=[{"expression": "true"}])
    await world.binding()
    await world.plugin.validate(world.request())
    (before,) = await world.plugin.policies.current()
    await world.binding("c")
    await world.plugin.validate(world.request())
    (after,) = await world.plugin.policies.current()
    assert [binding.name for binding in after.bindings] == ["b", "c"]
    assert after.definition.compiled is before.definition.compiled


@pytest.mark.parametrize(
    ("group", "resource", "seen"),
    [
        ("admissionregistration.k8s.io", "validatingadmissionpolicies", False),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", True),
        ("authorization.k8s.io", "subjectaccessreviews", False),
        ("", "pods", True),
    ],
)
def test_which_resources_policies_see(environment: Environment, group: str, resource: str, seen: bool) -> None:
    assert ValidatingAdmissionPolicy(environment).concerns("CREATE", GroupResource(group, resource), "") is seen
