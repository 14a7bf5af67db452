"""What each of the three servers knows."""

from __future__ import annotations

import pytest

from pilothouse.endpoints.schemes import CUSTOM_SCALES, find_kind, unknown_internal_kind, unknown_kind
from pilothouse.machinery.gvk import GroupVersionKind

DEFINITIONS, SERVICES = "apiextensions.k8s.io", "apiregistration.k8s.io"


@pytest.mark.parametrize(
    ("group", "version", "kind", "knowing"),
    [
        ("", "v1", "Pod", {"apps"}),
        ("apps", "v1", "DeleteOptions", {"apps"}),
        ("", "v1", "DeleteOptions", {"apps", DEFINITIONS, SERVICES}),
        ("", "v1", "ListOptions", {"apps", DEFINITIONS, SERVICES}),
        ("", "v1", "List", {"apps"}),
        ("foo", "v9", "Status", {"apps", DEFINITIONS, SERVICES}),
        ("meta.k8s.io", "v1", "Table", set()),
        (DEFINITIONS, "v1", "CustomResourceDefinition", {DEFINITIONS}),
        (SERVICES, "v1", "APIService", {SERVICES}),
        (SERVICES, "v1", "DeleteOptions", {SERVICES}),
        ("apps", "v1", "Nothing", set()),
    ],
)
def test_kinds(group: str, version: str, kind: str, knowing: set[str]) -> None:
    gvk = GroupVersionKind(group, version, kind)
    assert {server for server in ("apps", DEFINITIONS, SERVICES) if find_kind(server, gvk) is not None} == knowing


def test_words() -> None:
    gvk = GroupVersionKind("a.io", "v1", "B")
    assert unknown_kind("apps", gvk) == (
        'no kind "B" is registered for version "a.io/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )
    assert unknown_internal_kind(SERVICES, SERVICES, "B") == (
        'no kind "B" is registered for the internal version of group "apiregistration.k8s.io" in scheme '
        '"k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28"'
    )


@pytest.mark.parametrize(
    ("group", "version", "kind", "known"),
    [("autoscaling", "v1", "Scale", True), ("apps", "v1beta1", "Scale", True), ("", "v1", "Pod", False)],
)
def test_scales_of_custom_resources(group: str, version: str, kind: str, known: bool) -> None:
    gvk = GroupVersionKind(group, version, kind)
    assert (find_kind(CUSTOM_SCALES, gvk) is not None) == known
    assert unknown_kind(CUSTOM_SCALES, gvk).endswith(' in scheme "k8s.io/client-go/scale/util.go:146"')
