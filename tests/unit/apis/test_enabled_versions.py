"""Which versions are served."""

from __future__ import annotations

import pytest

from pilothouse.apis.enabled_versions import enabled_versions


@pytest.mark.parametrize(
    ("config", "on", "off"),
    [
        ({}, {"v1", "apps/v1"}, {"resource.k8s.io/v1beta1", "internal.apiserver.k8s.io/v1alpha1"}),
        ({"resource.k8s.io/v1beta1": "true"}, {"resource.k8s.io/v1beta1"}, {"resource.k8s.io/v1alpha3"}),
        ({"batch/v1": "false"}, {"apps/v1"}, {"batch/v1"}),
        ({"api/alpha": "true"}, {"resource.k8s.io/v1alpha3", "apps/v1"}, {"resource.k8s.io/v1beta1"}),
        ({"api/all": "false", "v1": "true"}, {"v1", "apiregistration.k8s.io/v1"}, {"apps/v1"}),
        ({"api/all": "true", "api/beta": "false"}, {"resource.k8s.io/v1alpha3"}, {"resource.k8s.io/v1beta1"}),
    ],
)
def test_versions(config: dict[str, str], on: set[str], off: set[str]) -> None:
    served = {str(version.group_version) for version in enabled_versions(config)}
    assert on <= served
    assert not off & served
