"""Warnings about pods that are valid but hardly meant."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.core.pod_spec.warnings import pod_warnings, template_warnings
from pilothouse.machinery.field_errors import Path

Struct = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def warned(spec: Struct, metadata: Struct | None = None) -> list[str]:
    return pod_warnings({"metadata": metadata or {}, "spec": {"containers": [{"name": "c"}], **spec}})


def ports(*given: Struct) -> Struct:
    return {"containers": [{"name": "c", "ports": [{"protocol": "TCP", **port} for port in given]}]}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}]},
            [
                "spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is"
                " deprecated since"
                ' v1.17; use "topology.kubernetes.io/zone" instead',
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        (
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z"}]}}},
            [f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: a null labelSelector results in matching no pod"],
        ),
        (
            {"volumes": [{"name": "v", "gitRepo": {}}, {"name": "w", "storageos": {}}]},
            [
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
            ],
        ),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}}]},
            ['volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"'],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {},
                                {"serviceAccountToken": {"path": "t"}},
                                {"secret": {"name": "s", "items": [{"path": "t"}]}},
                            ]
                        },
                    }
                ]
            },
            [
                'volume "v" (Projected) has no sources provided',
                'volume "v" (Projected): overlapping paths: "t" (Secret "s") with "t" (ServiceAccountToken)',
            ],
        ),
        (
            {"hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}], "imagePullSecrets": [{}]},
            [
                'spec.hostAliases[1].ip: duplicate ip "10.0.0.1"',
                'spec.imagePullSecrets[0].name: invalid empty name ""',
            ],
        ),
        (
            {"containers": [{"name": "c", "resources": {"limits": {"memory": "1500m"}}}]},
            [
                'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be'
                " an integer"
            ],
        ),
        (
            {
                "containers": [
                    {"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A"}]}
                ]
            },
            ['spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply'],
        ),
        (
            ports({"containerPort": 80}, {"containerPort": 80}, {"containerPort": 80, "hostPort": 1}),
            [
                "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
                "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
                "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
            ],
        ),
        (
            ports({"containerPort": 80, "hostPort": 1}, {"containerPort": 80, "hostPort": 1, "hostIP": "10.0.0.1"}),
            [
                "spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]",
            ],
        ),
        (
            ports({"containerPort": 80, "hostIP": "1.1.1.1"}),
            [
                "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80"
                " Protocol:TCP"
                " HostIP:1.1.1.1}"
            ],
        ),
        (
            ports({"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}),
            [
                'spec.containers[0].ports[1]: duplicate port name "a" with spec.containers[0].ports[0], services'
                " and probes"
                " that select ports by name will use spec.containers[0].ports[0]"
            ],
        ),
        (
            {"dnsConfig": {"nameservers": ["2001:DB8::1"]}},
            [
                'spec.dnsConfig.nameservers[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format'
                ' ("2001:db8::1")'
            ],
        ),
    ],
)
def test_warnings(spec: Struct, wanted: list[str]) -> None:
    assert warned(spec) == wanted


def test_templates_are_warned_about_at_their_path() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    template = {
        "metadata": {"annotations": {key: "unconfined", "scheduler.alpha.kubernetes.io/critical-pod": ""}},
        "spec": {"containers": [{"name": "c"}], "terminationGracePeriodSeconds": -1},
    }
    assert template_warnings(template, Path("spec", "template")) == [
        "spec.template.metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in"
        " v1.16+; use the"
        ' "priorityClassName" field instead',
        f'spec.template.metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead',
        "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be"
        " treated as 1",
    ]
    assert template_warnings(None, Path("spec")) == []


def test_seccomp_annotations_are_warned_about_without_the_field() -> None:
    key = "seccomp.security.alpha.kubernetes.io/pod"
    metadata = {"annotations": {key: "unconfined"}}
    assert len(warned({}, metadata)) == 1
    assert warned({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, metadata) == []
