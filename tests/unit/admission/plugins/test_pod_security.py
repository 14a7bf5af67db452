"""PodSecurity: pods are refused, templates warned about, namespaces told how their pods would fare."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.pod_security import PodSecurity
from pilothouse.endpoints.admission import CREATE, UPDATE
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.user import User

P = "pod-security.kubernetes.io/"
PODS, NAMESPACES = "/v1/pods", "/v1/namespaces"
BAD = [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]
DETAIL = 'privileged (container "c" must not set securityContext.privileged=true)'


@pytest.fixture
def plugin(environment: Environment) -> PodSecurity:
    return PodSecurity(environment)


async def label(put: Any, **labels: str) -> None:
    labels = {P + key.replace("_", "-"): value for key, value in labels.items()}
    await put(NAMESPACES, "ns", metadata={"labels": labels})


async def test_pods_are_refused(plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any, refused: Any) -> None:
    await label(put, enforce="baseline", audit="restricted")
    attributes = make_request(PODS, make_pod(containers=BAD))
    error = await refused(plugin.validate(attributes))
    assert error.message == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {DETAIL}'
    assert attributes.warnings == []
    assert attributes.annotations[P + "enforce-policy"] == "baseline:latest"
    assert attributes.annotations[P + "audit-violations"].startswith('would violate PodSecurity "restricted:latest": ')


async def test_pods_are_warned_about(plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any) -> None:
    await label(put, warn="baseline", warn_version="v1.20")
    attributes = make_request(PODS, make_pod(containers=BAD))
    await plugin.validate(attributes)
    assert attributes.warnings == [f'would violate PodSecurity "baseline:v1.20": {DETAIL}']


async def test_templates_are_only_warned_about(plugin: PodSecurity, make_request: Any, put: Any) -> None:
    await label(put, enforce="baseline")
    template = {"metadata": {}, "spec": {"containers": BAD}}
    job = {"metadata": {"name": "j"}, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    attributes = make_request("batch/v1/cronjobs", job)
    await plugin.validate(attributes)
    assert attributes.warnings == [f'would violate PodSecurity "baseline:latest": {DETAIL}']
    assert P + "enforce-policy" not in attributes.annotations


async def test_unlabelled_namespaces_check_nothing(
    plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any
) -> None:
    await put(NAMESPACES, "ns")
    attributes = make_request(PODS, make_pod(containers=BAD))
    await plugin.validate(attributes)
    assert attributes.annotations == {P + "enforce-policy": "privileged:latest"}


async def test_a_namespace_that_is_gone(plugin: PodSecurity, make_request: Any, make_pod: Any, refused: Any) -> None:
    error = await refused(plugin.validate(make_request(PODS, make_pod())))
    assert (error.code, error.message) == (500, 'Internal error occurred: failed to lookup namespace "ns"')


@pytest.mark.parametrize(
    ("change", "judged"),
    [
        ({}, False),
        ({"containers": [{**BAD[0], "image": "other"}]}, True),
        ({"ephemeralContainers": [{"name": "e"}]}, True),
        ({"containers": [*BAD, {"name": "d"}]}, True),
    ],
)
async def test_updates_count_when_they_matter(
    plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any, refused: Any, change: Any, judged: bool
) -> None:
    await label(put, enforce="baseline")
    new, old = make_pod(**{"containers": BAD, **change}), make_pod(containers=BAD)
    action = plugin.validate(make_request(PODS, new, old, operation=UPDATE))
    if judged:
        await refused(action)
    else:
        await action


CONFIGURATION = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline"},
}


@pytest.mark.parametrize(
    ("exemptions", "kind"),
    [
        ({"namespaces": ["ns"]}, "namespace"),
        ({"usernames": ["alice"]}, "user"),
        ({"runtimeClasses": ["kata"]}, "runtimeClass"),
    ],
)
async def test_exemptions(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, exemptions: Any, kind: str
) -> None:
    await put(NAMESPACES, "ns")
    plugin = PodSecurity(environment, {**CONFIGURATION, "exemptions": exemptions})
    attributes = make_request(PODS, make_pod(containers=BAD, runtimeClassName="kata"), user=User("alice"))
    await plugin.validate(attributes)
    assert attributes.annotations == {P + "exempt": kind}


async def test_defaults_of_the_configuration(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any
) -> None:
    await put(NAMESPACES, "ns")
    await refused(PodSecurity(environment, CONFIGURATION).validate(make_request(PODS, make_pod(containers=BAD))))


def namespace(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "ns", "labels": {P + key: value for key, value in labels.items()}}}


async def test_invalid_labels(plugin: PodSecurity, make_request: Any, refused: Any) -> None:
    error = await refused(plugin.validate(make_request(NAMESPACES, namespace(enforce="x"))))
    assert error.message == (
        'Namespace "ns" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": '
        "must be one of privileged, baseline, restricted"
    )
    same = namespace(enforce="x")
    await plugin.validate(make_request(NAMESPACES, same, namespace(enforce="x"), operation=UPDATE))


async def test_present_pods_are_described(plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any) -> None:
    for name in ("b", "a", "c"):
        await put(PODS, name, "ns", spec=make_pod(containers=BAD)["spec"])
    await put(PODS, "d", "ns", spec={**make_pod()["spec"], "hostPID": True})
    await put(PODS, "fine", "ns", spec=make_pod()["spec"])
    attributes = make_request(NAMESPACES, namespace(enforce="baseline"), namespace(), operation=UPDATE)
    await plugin.validate(attributes)
    assert attributes.warnings == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 2 other pods): privileged",
        "d: host namespaces",
    ]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"enforce": "baseline"}, {"enforce": "baseline"}),
        ({"enforce": "baseline"}, {"enforce": "restricted"}),
        ({"enforce": "privileged"}, {"enforce": "baseline"}),
    ],
)
async def test_relaxing_describes_nothing(
    plugin: PodSecurity, make_request: Any, make_pod: Any, put: Any, new: Any, old: Any
) -> None:
    await put(PODS, "a", "ns", spec=make_pod(containers=BAD)["spec"])
    attributes = make_request(NAMESPACES, namespace(**new), namespace(**old), operation=UPDATE)
    await plugin.validate(attributes)
    assert attributes.warnings == []


async def test_exempt_namespaces_hear_that_labels_mean_nothing(environment: Environment, make_request: Any) -> None:
    plugin = PodSecurity(environment, {**CONFIGURATION, "exemptions": {"namespaces": ["ns"]}})
    attributes = make_request(NAMESPACES, namespace(enforce="restricted"))
    await plugin.validate(attributes)
    assert attributes.warnings == [
        'namespace "ns" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored'
    ]


@pytest.mark.parametrize(
    ("operation", "group", "resource", "subresource", "concerned"),
    [
        (CREATE, "", "pods", "", True),
        (UPDATE, "", "pods", "ephemeralcontainers", True),
        (CREATE, "", "pods", "binding", False),
        (UPDATE, "", "pods", "status", False),
        ("DELETE", "", "pods", "", False),
        (CREATE, "apps", "deployments", "", True),
        (UPDATE, "apps", "deployments", "status", False),
        (CREATE, "", "services", "", False),
    ],
)
def test_what_concerns_it(
    plugin: PodSecurity, operation: str, group: str, resource: str, subresource: str, concerned: bool
) -> None:
    assert plugin.concerns(operation, GroupResource(group, resource), subresource) is concerned
