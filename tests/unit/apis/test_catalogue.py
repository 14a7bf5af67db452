"""The catalogue of types, the table of resources, and what is found by them: strategies, converters, warnings."""

from __future__ import annotations

from importlib import resources

import pytest

from pilothouse.apis import catalogue, types
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.deprecations import deprecation_of, removal_of
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context, StatusStrategy
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct


def row(version: str, name: str) -> Resource:
    return next(each for each in table()[parse_group_version(version)].resources if each.name == name)


def all_rows() -> list[Resource]:
    return [resource for version in table().values() for resource in version.resources]


def test_a_type_and_its_fields() -> None:
    container = types.struct("core.v1.Container")
    ports = container.fields["ports"]
    assert isinstance(ports.type, ListOf)
    assert isinstance(ports.type.item, Struct)
    assert (ports.list_type, ports.list_keys) == ("map", ("containerPort", "protocol"))
    assert (ports.merge_key, ports.patch, ports.omit_empty) == ("containerPort", frozenset({"merge"}), True)
    assert container.fields["name"].required
    assert types.struct("core.v1.Container") is container


@pytest.mark.parametrize(
    ("expression", "kind", "go"),
    [
        ("string", Scalar, "string"),
        ("bytes", Scalar, "[]uint8"),
        ("v1.PodPhase=string", Scalar, "v1.PodPhase"),
        ("[]string", ListOf, "[]string"),
        ("map[string]Quantity", MapOf, "map[string]resource.Quantity"),
        ("Time", Special, "v1.Time"),
        ("core.v1.Pod", Struct, "v1.Pod"),
        ("[]core.v1.Container", ListOf, "[]v1.Container"),
    ],
)
def test_type_expressions(expression: str, kind: type, go: str) -> None:
    made = types.parse_type(expression)
    assert isinstance(made, kind)
    assert made.go == go


def test_every_type_can_be_read() -> None:
    for name in types.names():
        made = types.struct(name)
        assert all(isinstance(each, Field) for each in made.fields.values()), name


@pytest.mark.parametrize(
    ("version", "kind", "name"),
    [
        ("v1", "Pod", "core.v1.Pod"),
        ("apps/v1", "Deployment", "apps.v1.Deployment"),
        ("rbac.authorization.k8s.io/v1", "Role", "rbac.v1.Role"),
        ("v1", "Status", "meta.v1.Status"),
        ("batch/v1", "DeleteOptions", "meta.v1.DeleteOptions"),
    ],
)
def test_kinds_are_found(version: str, kind: str, name: str) -> None:
    assert types.struct_of(version, kind) is types.struct(name)


@pytest.mark.parametrize(("version", "kind"), [("v1", "PodSpec"), ("v9", "Pod"), ("x/v1", "Pod"), ("v1", "")])
def test_kinds_that_are_none(version: str, kind: str) -> None:
    with pytest.raises(KeyError):
        types.struct_of(version, kind)


def test_unknown_kinds_are_not_remembered() -> None:
    before = types.struct.cache_info().currsize
    for number in range(100):
        assert types.find_kind(GroupVersionKind("", "v1", f"Made{number}")) is None
    assert types.struct.cache_info().currsize == before
    assert not hasattr(types.find_kind, "cache_info")


def test_every_row_has_a_type_and_a_hub() -> None:
    for resource in all_rows():
        assert types.exists(resource.type_name), resource
        if resource.is_stored:
            hub = table()[resource.hub]
            assert any(each.name == resource.name for each in hub.resources), resource


def test_rows() -> None:
    pods = row("v1", "pods")
    assert (pods.kind, pods.singular, pods.namespaced, pods.key) == ("Pod", "pod", True, "pods")
    assert pods.short_names == ("po",)
    assert {sub.name for sub in pods.subresources} >= {"status", "log", "exec", "eviction", "binding", "resize"}
    assert row("v1", "services").key == "services/specs"
    assert not row("authorization.k8s.io/v1", "subjectaccessreviews").is_stored
    events = row("events.k8s.io/v1", "events")
    assert events.hub == GroupVersion("", "v1")
    assert (
        row("autoscaling/v2", "horizontalpodautoscalers").hub == row("autoscaling/v1", "horizontalpodautoscalers").hub
    )


def test_keys_are_not_shared_by_different_kinds() -> None:
    kinds: dict[str, str] = {}
    for resource in all_rows():
        if resource.is_stored:
            assert kinds.setdefault(resource.key, resource.kind) == resource.kind


def test_storage_version_hashes() -> None:
    assert row("v1", "pods").storage_version_hash == "xPOwRZ+Yhw8="
    assert row("apps/v1", "deployments").storage_version_hash == "8aSe+NMegvE="


def test_every_stored_row_has_a_strategy() -> None:
    for resource in all_rows():
        if resource.is_stored:
            strategy = strategy_for(resource)
            known = {sub.name for sub in resource.subresources}
            assert set(strategy.subresources) <= known, resource.name
            if "status" in known:
                assert "status" in strategy.subresources, resource.name


def test_converters_are_needed_only_between_different_versions() -> None:
    assert converters_for(row("apps/v1", "deployments")) == (None, None)
    to_hub, from_hub = converters_for(row("autoscaling/v1", "horizontalpodautoscalers"))
    assert (to_hub is None) is (from_hub is None)


@pytest.mark.parametrize(
    ("version", "resource", "warning"),
    [
        ("v1", "pods", ""),
        ("v1", "componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
        (
            "v1",
            "endpoints",
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (
            "resource.k8s.io/v1beta1",
            "resourceclaims",
            "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+",
        ),
        ("resource.k8s.io/v1beta2", "devicetaintrules", ""),
        (
            "certificates.k8s.io/v1beta1",
            "clustertrustbundles",
            "certificates.k8s.io/v1beta1 ClusterTrustBundle is deprecated in v1.37+, unavailable in v1.40+; "
            "use certificates.k8s.io/v1 ClusterTrustBundle",
        ),
    ],
)
def test_deprecations(version: str, resource: str, warning: str) -> None:
    assert deprecation_of(row(version, resource)) == warning


@pytest.mark.parametrize(
    ("version", "resource", "release"),
    [
        ("v1", "endpoints", ""),
        ("resource.k8s.io/v1beta1", "resourceclaims", "1.38"),
        ("resource.k8s.io/v1beta2", "devicetaintrules", ""),
    ],
)
def test_removals(version: str, resource: str, release: str) -> None:
    assert removal_of(row(version, resource)) == release


def test_a_status_strategy_changes_the_status_only() -> None:
    old = {"metadata": {"name": "a"}, "spec": {"x": 1}, "data": {"k": "v"}, "status": {"phase": "A"}}
    new = {"metadata": {"name": "a", "labels": {"l": "m"}}, "spec": {"x": 2}, "more": 1, "status": {"phase": "B"}}
    StatusStrategy().prepare_for_update(Context(), new, old)
    assert new == {
        "metadata": {"name": "a", "labels": {"l": "m"}},
        "spec": {"x": 1},
        "data": {"k": "v"},
        "status": {"phase": "B"},
    }


@pytest.mark.parametrize("name", ["types.txt", "enums.txt", "gates.txt", "gated.txt", "resources.txt"])
def test_files_say_what_they_are_and_how_they_were_made(name: str) -> None:
    text = (resources.files("pilothouse.apis.catalogue") / name).read_text()
    first, second, *_ = text.splitlines()
    assert first.startswith("# ") and second.startswith("# ")
    assert "docs/next-release.md" in second
    content = catalogue.read(name)
    assert text.endswith(content)
    assert not any(line.startswith("#") for line in content.splitlines())
