"""What pods and templates get where they say nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.core.pod_spec.defaults import default_pod, default_pod_spec, default_pod_template, default_volume
from pilothouse.apis.core.pod_spec.images import default_pull_policy
from pilothouse.machinery.schema.decoding import decode

SHA = "sha256:" + "a" * 64


def pod(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    made, _ = decode(types.struct("core.v1.Pod"), {"metadata": {"name": "p"}, "spec": spec, **more})
    return made


def container(**more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "nginx:1.27", **more}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        (f"nginx@{SHA}", "IfNotPresent"),
        (f"nginx:latest@{SHA}", "Always"),
        ("nginx@sha256:short", "IfNotPresent"),
        ("registry.example:5000/a/b", "Always"),
        ("registry.example:5000/a/b:v1", "IfNotPresent"),
        ("localhost/a", "Always"),
        ("Upper/case", "Always"),
        ("example.com/Upper", "IfNotPresent"),
        ("UPPER", "IfNotPresent"),
        ("", "IfNotPresent"),
        (" nginx", "IfNotPresent"),
        ("a" * 300, "IfNotPresent"),
        ("ab" * 32, "IfNotPresent"),
        ("nginx:" + "t" * 129, "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def test_a_bare_pod_gets_the_usual_fields() -> None:
    made = pod({"containers": [container()]})
    default_pod(made)
    assert made["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.27",
                "resources": {},
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


def test_templates_get_less_than_pods() -> None:
    resources = {"limits": {"cpu": "1"}}
    template = {"metadata": {}, "spec": {"containers": [container(resources=resources)], "hostNetwork": True}}
    default_pod_template(template)
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}  # type: ignore[index]
    assert "enableServiceLinks" not in template["spec"]


def test_requests_come_from_limits_in_pods() -> None:
    given = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    made = pod(
        {"containers": [container(resources=given)], "initContainers": [container(resources={"limits": {"cpu": "2"}})]}
    )
    default_pod(made)
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert made["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "2"}


def test_host_network_takes_the_ports_over() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP"}]
    made = pod({"hostNetwork": True, "containers": [container(ports=ports)]})
    default_pod(made)
    assert made["spec"]["containers"][0]["ports"] == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "hostPort": 8081, "protocol": "UDP"},
    ]


def test_negative_grace_becomes_one_second_in_pods_only() -> None:
    made = pod({"containers": [], "terminationGracePeriodSeconds": -5})
    spec = copy.deepcopy(made["spec"])
    default_pod(made)
    default_pod_spec(spec)
    assert (made["spec"]["terminationGracePeriodSeconds"], spec["terminationGracePeriodSeconds"]) == (1, -5)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"serviceAccount": "a"}, "a"),
        ({"serviceAccountName": "b"}, "b"),
        ({"serviceAccountName": "b", "serviceAccount": "a"}, "b"),
    ],
)
def test_both_names_of_the_service_account_agree(given: dict[str, str], wanted: str) -> None:
    spec: dict[str, Any] = {"containers": None, **given}
    default_pod_spec(spec)
    assert spec["serviceAccount"] == spec["serviceAccountName"] == wanted


def test_amounts_below_a_thousandth_are_rounded_up() -> None:
    spec: dict[str, Any] = {
        "containers": [container(resources={"requests": {"cpu": "100n", "memory": "1500u"}})],
        "overhead": {"cpu": "1n"},
    }
    default_pod_spec(spec)
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1m", "memory": "2m"}
    assert spec["overhead"] == {"cpu": "1m"}


def test_probes_and_hooks() -> None:
    given = container(
        livenessProbe={"httpGet": {"port": 80}},
        readinessProbe={"grpc": {"port": 1, "service": None}, "periodSeconds": 3},
        lifecycle={"preStop": {"httpGet": {"port": "http", "path": "/x", "scheme": "HTTPS"}}},
    )
    spec = {"containers": [given]}
    default_pod_spec(spec)
    assert given["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert given["readinessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert given["readinessProbe"]["periodSeconds"] == 3
    assert given["lifecycle"]["preStop"]["httpGet"] == {"port": "http", "path": "/x", "scheme": "HTTPS"}


def test_variables() -> None:
    env = [
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "b", "valueFrom": {"fileKeyRef": {}}},
    ]
    spec: dict[str, Any] = {"containers": [container(env=env)]}
    default_pod_spec(spec)
    assert env[0]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}
    assert env[1]["valueFrom"] == {"fileKeyRef": {"optional": False}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"emptyDir": {}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "s", "defaultMode": 0}}, {"configMap": {"name": "s", "defaultMode": 0}}),
        ({"rbd": {}}, {"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
        ({"iscsi": {"lun": 1}}, {"iscsi": {"lun": 1, "iscsiInterface": "default"}}),
        (
            {"azureDisk": {"diskName": "d"}},
            {
                "azureDisk": {
                    "diskName": "d",
                    "cachingMode": "ReadWrite",
                    "fsType": "ext4",
                    "readOnly": False,
                    "kind": "Shared",
                }
            },
        ),
        ({"scaleIO": {}}, {"scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"}}),
        ({"image": {"reference": "a"}}, {"image": {"reference": "a", "pullPolicy": "Always"}}),
        (
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [{"fieldRef": {}}]}}]
                }
            },
            {
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                        {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1"}}]}},
                    ],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1n"}}}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"resources": {"requests": {"storage": "1m"}}, "volumeMode": "Filesystem"}
                    }
                }
            },
        ),
    ],
)
def test_volumes(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    volume = {"name": "v", **given}
    default_volume(volume)
    assert volume == {"name": "v", **wanted}
    default_volume(volume)
    assert volume == {"name": "v", **wanted}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"podIP": "10.0.0.1"}, {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
        ({"podIPs": [{"ip": "10.0.0.1"}]}, {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
        (
            {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]},
            {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}]},
        ),
    ],
)
def test_addresses_agree(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    made = pod({"containers": []}, status=given)
    default_pod(made)
    assert made["status"] == wanted
