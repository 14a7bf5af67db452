"""Other versions of a resource: only those that the server serves count."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.versions import ServedVersions
from pilothouse.machinery.gvk import GroupVersion


def found(served: ServedVersions, attributes: Any) -> list[str]:
    return [f"{each.resource.group_version} {each.kind.kind}" for each in served.equivalents(attributes)]


@pytest.mark.parametrize(
    ("enabled", "resource", "expected"),
    [
        (None, "/v1/events", ["events.k8s.io/v1 Event"]),
        (None, "events.k8s.io/v1/events", ["v1 Event"]),
        ({("", "v1")}, "/v1/events", []),
        (None, "/v1/pods", []),
        (None, "certificates.k8s.io/v1/clustertrustbundles", []),
        (
            {("certificates.k8s.io", "v1"), ("certificates.k8s.io", "v1beta1")},
            "certificates.k8s.io/v1/clustertrustbundles",
            ["certificates.k8s.io/v1beta1 ClusterTrustBundle"],
        ),
        (None, "unknown.example.com/v1/things", []),
        (None, "authentication.k8s.io/v1/tokenreviews", []),
    ],
)
def test_equivalents(
    make_request: Any, enabled: set[tuple[str, str]] | None, resource: str, expected: list[str]
) -> None:
    served = ServedVersions(None if enabled is None else {GroupVersion(*each) for each in enabled})
    assert found(served, make_request(resource, {})) == expected


def test_a_subresource_is_equivalent_only_where_it_exists(make_request: Any) -> None:
    served = ServedVersions({GroupVersion("", "v1"), GroupVersion("events.k8s.io", "v1")})
    assert found(served, make_request("/v1/events:status", {})) == []
