"""Which versions are served."""

from __future__ import annotations

import pytest

from pilothouse.apis.emulation import Emulation
from pilothouse.apis.enabled_versions import enabled_versions, too_new


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


def served(config: dict[str, str], emulation: Emulation) -> set[str]:
    versions = enabled_versions(config, emulation=emulation)
    return {f"{version.group_version}/{row.name}" for version in versions for row in version.resources}


def test_an_older_version_does_not_have_what_came_later() -> None:
    config = {"api/all": "true"}
    policies, requests = "mutatingadmissionpolicies", "podcertificaterequests"
    newer = {f"certificates.k8s.io/v1/{requests}", f"admissionregistration.k8s.io/v1/{policies}"}
    old = served(config, Emulation((1, 34), (1, 34)))
    assert not newer & old
    assert {"admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies", "apps/v1/deployments"} <= old
    assert newer <= served(config, Emulation())
    assert newer - served(config, Emulation((1, 36), (1, 35))) == {"certificates.k8s.io/v1/podcertificaterequests"}


def test_an_older_version_has_what_is_gone_by_now() -> None:
    gone = {
        "networking.k8s.io/v1beta1/ipaddresses",
        "networking.k8s.io/v1beta1/servicecidrs",
        "storage.k8s.io/v1beta1/volumeattributesclasses",
    }
    older, long_gone = Emulation((1, 36), (1, 35)), "networking.k8s.io/v1beta1/ingresses"
    assert gone <= served({"api/beta": "true"}, older)
    assert gone - served({"networking.k8s.io/v1beta1": "true"}, older) == {
        "storage.k8s.io/v1beta1/volumeattributesclasses"
    }
    assert not gone & served({}, older), "betas are off by themselves"
    assert not (gone | {long_gone}) & served({"api/all": "true"}, Emulation())
    assert long_gone not in served({"api/all": "true"}, older)
    assert gone | {long_gone} <= served({"api/legacy": "true"}, Emulation())


def test_newer_versions_of_what_there_is() -> None:
    """Forward compatible: where an older version is served. Or by name, where that is allowed."""
    policies = "admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    forward = Emulation((1, 35), (1, 34), serves_newer=True)
    assert policies in served({"admissionregistration.k8s.io/v1beta1": "true"}, forward)
    assert policies not in served({}, forward)
    switched = Emulation((1, 35), (1, 34), switches_newer=True)
    assert policies not in served({}, switched)
    assert policies in served({"admissionregistration.k8s.io/v1": "true"}, switched)


def test_newer_ones_that_are_named_are_refused() -> None:
    emulation = Emulation((1, 36), (1, 35))
    assert too_new({"apps/v1": "true", "storagemigration.k8s.io/v1": "false"}, emulation) == []
    (whole,) = too_new({"storagemigration.k8s.io/v1": "true"}, emulation)
    assert whole.startswith("cannot enable version storagemigration.k8s.io/v1 in runtime-config because all the ")
    (one,) = too_new({"certificates.k8s.io/v1/podcertificaterequests": "true"}, emulation)
    assert "certificates.k8s.io/v1, Resource=podcertificaterequests" in one
    assert "introduced at 1.37 after the current version 1.36." in one
