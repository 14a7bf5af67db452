"""How errors of a change are listed, which depends on the kind's own way of judging metadata."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.resources import table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import GenerationRules
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.schema.decoding import decode
from pilothouse.registry.rest.before_update import before_update

NEITHER = "name is neither a standard finalizer name nor is it fully qualified"


def causes(group_version: str, name: str, metadata: dict[str, Any]) -> list[str]:
    resource = next(row for row in table()[parse_group_version(group_version)].resources if row.name == name)
    strategy = strategy_for(resource)
    strategy.validate_update = lambda ctx, obj, old: []  # type: ignore[method-assign]
    old: dict[str, Any] = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}, "spec": {}, "status": {}}
    if resource.namespaced:
        old["metadata"]["namespace"] = "n"
    with pytest.raises(StatusError) as refused:
        ctx = Context(namespace="n" if resource.namespaced else "")
        before_update(resource, strategy, ctx, {**old, "metadata": {**old["metadata"], **metadata}}, old)
    return [f"{cause['field']}: {cause['message']}" for cause in (refused.value.details or {})["causes"]]


def test_finalizers_of_built_in_kinds_are_qualified_on_update_too() -> None:
    assert causes("v1", "configmaps", {"finalizers": ["plain"]}) == [
        f'metadata.finalizers[0]: Invalid value: "plain": {NEITHER}'
    ]


@pytest.mark.parametrize(
    ("group_version", "name", "count"),
    [
        ("v1", "configmaps", 1),
        ("apiregistration.k8s.io/v1", "apiservices", 2),
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", 2),
    ],
)
def test_kinds_without_declared_rules_list_errors_of_changed_metadata_twice(
    group_version: str, name: str, count: int
) -> None:
    wanted = 'metadata.uid: Invalid value: "2": field is immutable'
    assert causes(group_version, name, {"uid": "2"}) == [wanted] * count


@pytest.mark.parametrize(
    ("group_version", "name", "prefix", "count"),
    [
        ("v1", "configmaps", "Not_Valid", 1),
        ("v1", "configmaps", "a/b", 2),
        ("v1", "namespaces", "a.b", 1),
        ("v1", "pods", "Not_Valid", 1),
        ("networking.k8s.io/v1", "ipaddresses", "a-", 1),
        ("v1", "services", "a/b", 1),
        ("coordination.k8s.io/v1", "leases", "a/b", 1),
    ],
)
def test_prefixes_of_names_are_judged_again_where_the_kind_says_so(
    group_version: str, name: str, prefix: str, count: int
) -> None:
    found = causes(group_version, name, {"generateName": prefix})
    assert [error.split(":")[0] for error in found] == ["metadata.generateName"] * count


class FreeStrategy(Strategy):
    def __init__(self, any_value: bool) -> None:
        self.generation_rules = GenerationRules(counted=True, any_value=any_value)


@pytest.mark.parametrize(
    ("any_value", "old", "new", "generation"),
    [
        (True, {"a": True}, {"a": 1}, 2),
        (True, {"a": [0]}, {"a": [False]}, 2),
        (True, {"a": 1}, {"a": 1.0}, 2),
        (True, {"a": 1, "b": 2}, {"b": 2, "a": 1}, 1),
        (True, {"a": 1}, {"a": 2}, 2),
        (False, {"a": 1}, {"a": 2}, 2),
        (False, {"a": 1}, {"a": 1}, 1),
    ],
)
def test_generations_count_what_only_looks_equal(any_value: bool, old: Any, new: Any, generation: int) -> None:
    resource = next(row for row in table()[parse_group_version("v1")].resources if row.name == "configmaps")
    metadata = {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "1", "generation": 1}
    obj = {"metadata": dict(metadata), "spec": new}
    before_update(resource, FreeStrategy(any_value), Context(namespace="n"), obj, {"metadata": metadata, "spec": old})
    assert obj["metadata"]["generation"] == generation


@pytest.mark.parametrize(
    ("group_version", "name", "given", "generation"),
    [
        ("networking.k8s.io/v1", "networkpolicies", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}, 3),
        (
            "networking.k8s.io/v1",
            "networkpolicies",
            {"spec": {"podSelector": {"matchLabels": {}}, "policyTypes": ["Ingress"]}},
            4,
        ),
        ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", {"webhooks": []}, 4),
        ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", {"webhooks": []}, 4),
        (
            "admissionregistration.k8s.io/v1",
            "mutatingwebhookconfigurations",
            {"webhooks": [{"name": "a.b.c", "clientConfig": {"url": "https://a", "caBundle": ""}}]},
            3,
        ),
        ("networking.k8s.io/v1", "ingresses", {"spec": {"defaultBackend": {"resource": {}}, "rules": []}}, 3),
        ("resource.k8s.io/v1", "deviceclasses", {"spec": {"config": []}}, 3),
    ],
)
def test_what_is_given_as_empty_is_a_change_to_some_kinds(
    group_version: str, name: str, given: dict[str, Any], generation: int
) -> None:
    resource = next(row for row in table()[parse_group_version(group_version)].resources if row.name == name)
    strategy = strategy_for(resource)
    strategy.validate_update = lambda ctx, obj, old: []  # type: ignore[method-assign]
    metadata = {"name": "a", "uid": "1", "resourceVersion": "1"} | ({"namespace": "n"} if resource.namespaced else {})
    struct = types.struct(resource.type_name)
    old = decode(struct, {**given, "metadata": metadata})[0]
    old["metadata"]["generation"] = 3
    obj = decode(struct, {**given, "metadata": metadata}, noting=True)[0]
    before_update(resource, strategy, Context(namespace="n" if resource.namespaced else ""), obj, old)
    assert obj["metadata"]["generation"] == generation
