"""What Pod Security counts."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.pod_security import PodSecurity
from pilothouse.machinery.metrics import render

PREFIX = "pod-security.kubernetes.io/"
PODS = "/v1/pods"


def shown(environment: Environment) -> dict[str, float]:
    """Series above zero, without the common beginning of their names."""
    lines = render(environment.metrics.pod_security.instruments()).decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name.removeprefix("pod_security_"): float(value) for name, _, value in pairs if float(value)}


def evaluation(decision: str, level: str, version: str, mode: str, resource: str = "pod") -> str:
    request = f'request_operation="create",resource="{resource}",subresource=""'
    policy = f'decision="{decision}",policy_level="{level}",policy_version="{version}"'
    return f'evaluations_total{{{policy},mode="{mode}",{request}}}'


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, {evaluation("allow", "privileged", "latest", "enforce"): 1}),
        (
            {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted", "warn-version": "v1.99"},
            {
                evaluation("allow", "baseline", "v1.30", "enforce"): 1,
                evaluation("deny", "restricted", "future", "warn"): 1,
            },
        ),
        (
            {"audit": "restricted"},
            {
                evaluation("allow", "privileged", "latest", "enforce"): 1,
                evaluation("deny", "restricted", "latest", "audit"): 1,
            },
        ),
        (
            {"audit": "strict", "warn": "privileged"},
            {
                evaluation("allow", "privileged", "latest", "enforce"): 1,
                'errors_total{fatal="false",request_operation="create",resource="pod",subresource=""}': 1,
            },
        ),
    ],
)
async def test_pods(
    environment: Environment, put: Any, make_request: Any, make_pod: Any, labels: Any, expected: dict[str, float]
) -> None:
    await put("/v1/namespaces", "ns", metadata={"labels": {PREFIX + key: value for key, value in labels.items()}})
    await PodSecurity(environment).validate(make_request(PODS, make_pod()))
    assert shown(environment) == expected


async def test_refusals_and_exemptions(
    environment: Environment, put: Any, make_request: Any, make_pod: Any, refused: Any
) -> None:
    await put("/v1/namespaces", "ns", metadata={"labels": {PREFIX + "enforce": "restricted"}})
    await refused(PodSecurity(environment).validate(make_request(PODS, make_pod())))
    exemptions = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "exemptions": {"namespaces": ["ns"]},
    }
    await PodSecurity(environment, exemptions).validate(make_request("apps/v1/deployments", {"metadata": {}}))
    assert shown(environment) == {
        evaluation("deny", "restricted", "latest", "enforce"): 1,
        'exemptions_total{request_operation="create",resource="controller",subresource=""}': 1,
    }
