"""Mutating policies: apply configurations, JSON patches, params, failures and a second run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.plugins.mutating_admission_policy import MutatingAdmissionPolicy
from pilothouse.apis.gates import default_gates
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

POLICIES = "admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"}
LABEL = "Object{metadata: Object.metadata{labels: {'%s': %s}}}"


def applying(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patching(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


class World:
    """A server with policies, and requests to it."""

    def __init__(self, environment: Environment, put: Any, make_request: Any, make_pod: Any) -> None:
        self.plugin = MutatingAdmissionPolicy(environment)
        self.put, self._make_request, self._make_pod = put, make_request, make_pod

    async def policy(self, *mutations: Object, name: str = "p", **spec: Any) -> None:
        constraints = {"resourceRules": [RULE], "matchPolicy": "Equivalent"}
        spec = {"matchConstraints": constraints, "failurePolicy": "Fail", "mutations": list(mutations), **spec}
        await self.put(POLICIES, name, spec=spec)
        await self.put(BINDINGS, name, spec={"policyName": name, **spec.pop("binding", {})})

    def request(self, **more: Any) -> Attributes:
        attributes: Attributes = self._make_request("/v1/pods", self._make_pod(), **more)
        attributes.kind = GroupVersionKind("", "v1", "Pod")
        return attributes

    async def admit(self) -> Object:
        attributes = self.request()
        await self.plugin.admit(attributes)
        assert attributes.object is not None
        return attributes.object


@pytest.fixture
async def world(environment: Environment, put: Any, make_request: Any, make_pod: Callable[..., Object]) -> World:
    await put("/v1/namespaces", "ns", metadata={"labels": {"team": "a"}})
    return World(environment, put, make_request, make_pod)


async def test_configurations_merge_by_key(world: World) -> None:
    container = "Object.spec.containers{name: 'c', imagePullPolicy: 'Always'}"
    other = "Object.spec.containers{name: 'd', image: object.spec.containers[0].image + '2'}"
    await world.policy(applying(f"Object{{spec: Object.spec{{containers: [{container}, {other}]}}}}"))
    containers = (await world.admit())["spec"]["containers"]
    assert [(each["name"], each["image"], each["imagePullPolicy"]) for each in containers] == [
        ("c", "img", "Always"),
        ("d", "img2", "Always"),
    ]


async def test_mutations_see_those_before_them(world: World) -> None:
    path = "'/metadata/labels/' + jsonpatch.escapeKey('a/b')"
    later = f"[JSONPatch{{op: 'add', path: {path}, value: object.metadata.labels.one}}]"
    await world.policy(applying(LABEL % ("one", "variables.v")), patching(later), variables=[
        {"name": "v", "expression": "namespaceObject.metadata.labels.team"}])  # fmt: skip
    await world.policy(applying(LABEL % ("two", "object.metadata.labels.one + '2'")), name="q")
    assert (await world.admit())["metadata"]["labels"] == {"one": "a", "a/b": "a", "two": "a2"}


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (
            patching("[JSONPatch{op: 'replace', path: '/spec/zz/y', value: 1}]"),
            "JSON Patch: replace operation does not apply: doc is missing path: /spec/zz/y: missing value",
        ),
        (applying("Object{spec: Object.wrong{}}"), 'type mismatch: unexpected type name "Object.wrong", expected "Obj'),
        (
            applying("Object{spec: Object.spec{zz: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec.zz: field not declared",
        ),
        (
            applying("Object{metadata: Object.metadata{annotations: {'a': dyn(b'x\\n')}}}"),
            "error applying patch: failed to convert patch object to typed object: .metadata.annotations.a: "
            "expected string, got &value.valueUnstructured{Value:[]uint8{0x78, 0xa}}",
        ),
        (
            applying("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".spec.nodeSelector",
        ),
        (
            applying("Object{spec: object.zz}"),
            "expression 'Object{spec: object.zz}' resulted in error: no such key: zz",
        ),
        (applying("oops"), "compilation failed: ERROR: <input>:1:1: undeclared reference to 'oops'"),
    ],
)
async def test_failures(world: World, refused: Any, mutation: Object, said: str) -> None:
    await world.policy(mutation)
    error = await refused(world.admit())
    assert (error.code, error.reason) == (403, "Invalid")
    assert error.message.startswith(f"policy 'p' with binding 'p' denied request: {said}")
    assert error.details["causes"] == [{"message": error.message}]
    await world.policy(mutation, applying(LABEL % ("still", "'made'")), failurePolicy="Ignore")
    assert (await world.admit())["metadata"]["labels"] == {"still": "made"}


async def test_patches_with_unknown_fields(world: World, refused: Any) -> None:
    await world.policy(patching("[JSONPatch{op: 'add', path: '/spec/zz', value: 1}]"), failurePolicy="Ignore")
    error = await refused(world.admit())
    assert (error.code, error.message) == (
        500,
        'Internal error occurred: strict decoding error: unknown field "spec.zz"',
    )


async def test_a_failed_test_changes_nothing(world: World) -> None:
    test = "[JSONPatch{op: 'test', path: '/metadata/name', value: 'no'}, JSONPatch{op: 'remove', path: '/spec'}]"
    await world.policy(patching(test))
    assert await world.admit() == world.request().object


@pytest.mark.parametrize(
    ("condition", "binding", "made"),
    [
        ("object.metadata.name == 'p'", {}, True),
        ("object.metadata.name == 'q'", {}, False),
        ("true", {"matchResources": {"namespaceSelector": {"matchLabels": {"team": "b"}}}}, False),
    ],
)
async def test_who_is_concerned(world: World, condition: str, binding: Object, made: bool) -> None:
    conditions = [{"name": "c", "expression": condition}]
    await world.policy(applying(LABEL % ("a", "'b'")), matchConditions=conditions, binding=binding)
    assert ((await world.admit())["metadata"].get("labels") is not None) is made


async def test_conditions_that_fail(world: World, refused: Any) -> None:
    await world.policy(applying(LABEL % ("a", "'b'")), matchConditions=[{"name": "c", "expression": "object.zz"}])
    error = await refused(world.admit())
    assert (error.code, error.reason) == (403, "Invalid")


async def test_unknown_params(world: World, refused: Any) -> None:
    await world.policy(paramKind={"apiVersion": "x.io/v1", "kind": "X"})
    error = await refused(world.admit())
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        'policy "p" denied request: failed to configure policy: '
        "failed to find resource referenced by paramKind: 'x.io/v1, Kind=X'"
    )


async def test_every_object_of_params_counts(world: World) -> None:
    for name in ("a", "b"):
        await world.put("/v1/configmaps", name, "ns", data={"key": name})
    expression = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {params.data.key: params.kind}}]"
    binding = {"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await world.policy(patching(expression), paramKind=kind, binding=binding)
    assert (await world.admit())["metadata"]["labels"] == {"b": "ConfigMap"}


@pytest.mark.parametrize(("again", "count"), [("IfNeeded", "2"), ("Never", "1")])
async def test_a_second_run(world: World, again: str, count: str) -> None:
    counted = "string(int(object.metadata.?labels.?n.orValue('0')) + 1)"
    await world.policy(applying(LABEL % ("n", counted)), reinvocationPolicy=again)
    await world.policy(applying(LABEL % ("later", "'x'")), name="q", reinvocationPolicy="Never")
    attributes = world.request()
    plugins: list[Plugin] = [world.plugin]
    await AdmissionChain(plugins).admit(attributes)
    assert attributes.object is not None
    assert attributes.object["metadata"]["labels"] == {"n": count, "later": "x"}


@pytest.mark.parametrize(("again", "count"), [("IfNeeded", "2"), ("Never", "1")])
async def test_a_policy_is_due_again_after_its_own_change(world: World, again: str, count: str) -> None:
    counted = "string(int(object.metadata.?labels.?n.orValue('0')) + 1)"
    await world.policy(applying(LABEL % ("n", counted)), reinvocationPolicy=again)
    attributes = world.request()
    plugins: list[Plugin] = [world.plugin]
    await AdmissionChain(plugins).admit(attributes)
    assert attributes.object is not None
    assert attributes.object["metadata"]["labels"] == {"n": count}


async def test_nothing_to_change(world: World, cacher: Cacher) -> None:
    await world.policy(applying(LABEL % ("a", "'b'")))
    attributes = world.request(operation="DELETE")
    attributes.old_object, attributes.object = attributes.object, None
    await world.plugin.admit(attributes)
    assert attributes.object is None
    environment = Environment(StorageFactory(cacher, gates=default_gates() - {"MutatingAdmissionPolicy"}))
    off = MutatingAdmissionPolicy(environment)
    assert not off.concerns("CREATE", attributes.resource.group_resource, "")
