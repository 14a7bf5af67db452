"""Which level applies: labels, defaults, and labels that make no sense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.pod_security.configuration import Configuration, read_configuration
from pilothouse.admission.pod_security.policies import LATEST, LevelVersion, Policy, read_policy

P = "pod-security.kubernetes.io/"


def show(policy: Policy) -> str:
    return f"{policy.enforce} {policy.audit} {policy.warn}"


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ({}, "privileged:latest privileged:latest privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest privileged:latest baseline:latest"),
        ({"enforce": "baseline", "enforce-version": "v1.20"}, "baseline:v1.20 privileged:latest baseline:v1.20"),
        ({"enforce": "baseline", "warn-version": "v1.5"}, "baseline:latest privileged:latest baseline:v1.5"),
        ({"enforce": "baseline", "warn": "privileged"}, "baseline:latest privileged:latest privileged:latest"),
        ({"warn": "restricted", "audit": "baseline"}, "privileged:latest baseline:latest restricted:latest"),
    ],
)
def test_labels(labels: dict[str, str], shown: str) -> None:
    policy, errs = read_policy({P + key: value for key, value in labels.items()}, Policy())
    assert (show(policy), errs) == (shown, [])


@pytest.mark.parametrize(
    ("labels", "shown", "message"),
    [
        (
            {"enforce": "x"},
            "restricted:latest privileged:latest privileged:latest",
            'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, '
            "baseline, restricted",
        ),
        (
            {"audit": "x"},
            "privileged:latest privileged:latest privileged:latest",
            'metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "x": must be one of privileged, '
            "baseline, restricted",
        ),
        (
            {"warn-version": "1.20"},
            "privileged:latest privileged:latest privileged:latest",
            'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.20": must be "latest" or '
            '"v1.x"',
        ),
    ],
)
def test_labels_that_make_no_sense(labels: dict[str, str], shown: str, message: str) -> None:
    policy, errs = read_policy({P + key: value for key, value in labels.items()}, Policy())
    assert (show(policy), [str(error) for error in errs]) == (shown, [message])


@given(st.dictionaries(st.sampled_from([P + k for k in ("enforce", "audit", "warn", "enforce-version")]), st.text()))
def test_there_is_always_a_policy(labels: dict[str, str]) -> None:
    policy, _ = read_policy(labels, Policy())
    assert policy.enforce.level in ("privileged", "baseline", "restricted")


def test_equivalence() -> None:
    assert LevelVersion("privileged", 3).is_equivalent(LevelVersion("privileged", LATEST))
    assert not LevelVersion("baseline", 3).is_equivalent(LevelVersion("baseline", LATEST))


RAW = {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}


def test_configuration() -> None:
    read = read_configuration(
        {
            **RAW,
            "defaults": {"enforce": "baseline", "enforce-version": "v1.30"},
            "exemptions": {"namespaces": ["kube-system"], "usernames": ["u"], "runtimeClasses": ["r"]},
        }
    )
    assert show(read.defaults) == "baseline:v1.30 privileged:latest privileged:latest"
    assert (read.namespaces, read.usernames, read.runtime_classes) == (
        frozenset({"kube-system"}),
        frozenset({"u"}),
        frozenset({"r"}),
    )
    assert read_configuration(None) == Configuration()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"kind": "Other", "apiVersion": "v1"}, 'no kind "Other" is registered for version "v1"'),
        ({**RAW, "defaults": {"warn": "x"}}, "PodSecurity configuration error: warn: must be one of privileged"),
        ({**RAW, "exemptions": {"usernames": [""]}}, "username must not be empty"),
        ({**RAW, "exemptions": {"usernames": ["a", "a"]}}, 'exemptions.usernames[1]: Duplicate value: "a"'),
    ],
)
def test_faulty_configuration(raw: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(raw)
    assert message in str(caught.value)
