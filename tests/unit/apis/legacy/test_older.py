from __future__ import annotations

import pytest

from pilothouse.apis import types
from pilothouse.apis.deprecations import deprecation_of
from pilothouse.apis.enabled_versions import enabled_versions
from pilothouse.apis.legacy.older import converters_of
from pilothouse.apis.resources import Resource, hub_row, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.machinery.gvk import GroupVersion


def row(version: str, name: str) -> Resource:
    group, _, version = version.rpartition("/")
    return next(row for row in table()[GroupVersion(group, version)].resources if row.name == name)


def legacy_rows() -> list[Resource]:
    return [row for version in table().values() for row in version.resources if row.legacy]


def served(**config: str) -> set[str]:
    return {
        f"{row.group_version} {row.name}"
        for version in enabled_versions({key.replace("__", "/"): value for key, value in config.items()})
        for row in version.resources
        if row.legacy
    }


def test_every_row_has_types_and_a_version_to_be_kept_in() -> None:
    assert len(legacy_rows()) > 60
    for each in legacy_rows():
        assert types.exists(each.type_name), each.type_name
        assert types.exists(hub_row(each).type_name) or not each.verbs
        for sub in each.subresources:
            assert types.find_kind(sub.kind) is not None, sub


def test_every_row_has_a_strategy() -> None:
    for each in legacy_rows():
        if each.is_stored:
            assert strategy_for(each).columns is not None


def test_versions_of_the_same_shape_are_not_converted() -> None:
    assert converters_of(row("coordination.k8s.io/v1beta1", "leases")) == (None, None)
    assert converters_of(row("rbac.authorization.k8s.io/v1beta1", "clusterroles")) == (None, None)


def test_nothing_is_served_unless_told() -> None:
    assert served() == set()
    assert served(api__all="true") == set()


@pytest.mark.parametrize(
    ("key", "some", "none"),
    [
        ("api/legacy", "settings.k8s.io/v1alpha1 podpresets", ""),
        ("extensions/v1beta1", "extensions/v1beta1 ingresses", "apps/v1beta1"),
        ("extensions/v1beta1/ingresses", "extensions/v1beta1 ingresses", "extensions/v1beta1 deployments"),
        ("scheduling.k8s.io/v1beta1/priorityclasses", "scheduling.k8s.io/v1beta1 priorityclasses", "apps"),
    ],
)
def test_keys_that_switch_on(key: str, some: str, none: str) -> None:
    names = served(**{key.replace("/", "__"): "true"})
    assert some in names
    assert not none or not any(name.startswith(none) for name in names)


def test_a_version_that_is_in_use_does_not_bring_its_old_kinds() -> None:
    assert served(**{"scheduling.k8s.io__v1beta1": "true"}) == set()


def test_warnings_tell_the_end_and_the_successor() -> None:
    deployments = row("extensions/v1beta1", "deployments")
    assert deprecation_of(deployments) == (
        "extensions/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment"
    )
    (scale,) = (sub for sub in deployments.subresources if sub.name == "scale")
    assert (
        deprecation_of(deployments, scale) == "extensions/v1beta1 Scale is deprecated in v1.2+, unavailable in v1.16+"
    )
