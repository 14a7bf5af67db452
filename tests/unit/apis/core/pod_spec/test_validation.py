"""Errors of pod specs: paths, order and words. Each row changes a sound pod and lists all that is said about it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.core.pod.validation import validate_new_pod
from pilothouse.apis.core.pod_spec.defaults import default_pod, default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, new_options, options_for, options_for_status
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.gates import ALLOW_PRIVILEGED, default_gates
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.schema.decoding import decode

Struct = dict[str, Any]
SOUND: Struct = {"containers": [{"name": "c", "image": "nginx:1"}]}
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an"
    " alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def errors_of(spec: Struct, annotations: dict[str, str] | None = None, *, privileged: bool = True) -> list[str]:
    raw = {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": {**copy.deepcopy(SOUND), **spec}}
    pod, _ = decode(types.struct("core.v1.Pod"), raw)
    default_pod(pod)
    errs: list[FieldError] = []
    validate_new_pod(pod, errs, PodValidationOptions(is_pod=True, allow_privileged=privileged))
    return [str(error) for error in errs]


_UNSUPPORTED = 'Unsupported value: "cpu\\u003c": supported values: "cpu", "memory"'


def container(**more: Any) -> Struct:
    return {"containers": [{"name": "c", "image": "nginx:1", **more}]}


def test_a_sound_pod_has_no_errors() -> None:
    assert errors_of({}) == []


CONTAINERS: list[tuple[Struct, list[str]]] = [
    ({"containers": []}, ["spec.containers: Required value"]),
    ({"containers": [{"image": "a"}]}, ["spec.containers[0].name: Required value"]),
    ({"containers": [{"name": "a"}]}, ["spec.containers[0].image: Required value"]),
    (
        {"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
        ['spec.containers[1].name: Duplicate value: "a"'],
    ),
    ({"containers": [{"name": "A", "image": "i"}]}, [f'spec.containers[0].name: Invalid value: "A": {LABEL}']),
    (
        container(image=" nginx"),
        ['spec.containers[0].image: Invalid value: " nginx": must not have leading or trailing whitespace'],
    ),
    (
        container(imagePullPolicy="Sometimes"),
        [
            'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always",'
            ' "IfNotPresent",'
            ' "Never"'
        ],
    ),
    (
        container(terminationMessagePolicy="X"),
        [
            'spec.containers[0].terminationMessagePolicy: Unsupported value: "X": supported values: "File",'
            ' "FallbackToLogsOnError"'
        ],
    ),
    (
        container(ports=[{"containerPort": 0}, {"containerPort": 70000, "protocol": "X"}]),
        [
            "spec.containers[0].ports[0].containerPort: Required value",
            "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            'spec.containers[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    (
        container(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        ['spec.containers[0].ports[1].name: Duplicate value: "a"'],
    ),
    (
        container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
        ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//9"'],
    ),
    (
        container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "X"}]),
        [
            'spec.containers[0].resizePolicy: Unsupported value: "X": supported values: "NotRequired",'
            ' "RestartContainer"'
        ],
    ),
    (
        container(resizePolicy=[{"resourceName": "cpu<", "restartPolicy": "NotRequired"}] * 2),
        [
            f"spec.containers[0].resizePolicy: {_UNSUPPORTED}",
            'spec.containers[0].resizePolicy[1]: Duplicate value: "cpu\\u003c"',
            f"spec.containers[0].resizePolicy: {_UNSUPPORTED}",
        ],
    ),
    (
        container(restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]),
        ["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
    ),
    (
        {"initContainers": [{"name": "c", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]},
        [
            'spec.initContainers[0].name: Duplicate value: "c"',
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without"
            " restartPolicy=Always",
        ],
    ),
    (
        {
            "initContainers": [
                {"name": "s", "image": "i", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 1}}}
            ]
        },
        [],
    ),
    (
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
]

ENVIRONMENT: list[tuple[Struct, list[str]]] = [
    (container(env=[{"name": ""}]), ["spec.containers[0].env[0].name: Required value"]),
    (container(env=[{"name": "any thing"}]), []),
    (
        container(env=[{"name": "a=b"}]),
        [
            'spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must'
            " consist only of"
            " printable ASCII characters other than '='"
        ],
    ),
    (
        container(env=[{"name": "a", "valueFrom": {}}]),
        [
            'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`,'
            " `resourceFieldRef`,"
            " `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        ],
    ),
    (
        container(env=[{"name": "a", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
        ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ),
    (
        container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nope"}}}]),
        [
            'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.nope": error converting'
            " fieldPath: field label not supported: metadata.nope"
        ],
    ),
    (
        container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]),
        [
            'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase":'
            " supported values:"
            ' "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",'
            ' "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
        ],
    ),
    (container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}]), []),
    (
        container(env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName['x']"}}}]),
        [
            "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.nodeName['x']\": error"
            " converting fieldPath: field label does not support subscript: spec.nodeName['x']"
        ],
    ),
    (
        container(env=[{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1k"}}}]),
        [
            'spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s'
            " values 1m and 1 are supported with the cpu resource"
        ],
    ),
    (
        container(env=[{"name": "a", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}}]),
        ['spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"'],
    ),
    (
        container(envFrom=[{}]),
        ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
    ),
]

PROBES: list[tuple[Struct, list[str]]] = [
    (container(livenessProbe={}), ["spec.containers[0].livenessProbe: Required value: must specify a handler type"]),
    (
        container(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}, "successThreshold": 2}),
        [
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    ),
    (
        container(
            readinessProbe={"httpGet": {"port": "Bad_"}, "terminationGracePeriodSeconds": 5, "periodSeconds": -1}
        ),
        [
            'spec.containers[0].readinessProbe.httpGet.port: Invalid value: "Bad_": must contain only alpha-numeric'
            " characters (a-z, 0-9), and hyphens (-)",
            "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for"
            " readinessProbes",
        ],
    ),
    (
        container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        [
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than"
            " terminationGracePeriodSeconds (30)"
        ],
    ),
]

RESOURCES: list[tuple[Struct, list[str]]] = [
    (
        container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
        ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    (
        container(resources={"limits": {"cpu": "-1"}}),
        [
            'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    (
        container(resources={"requests": {"example.com/gpu": "1"}}),
        ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    (
        container(resources={"limits": {"example.com/gpu": "500m"}}),
        [
            'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer',
            'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    (
        container(resources={"limits": {"pods": "1"}}),
        [
            'spec.containers[0].resources.limits[pods]: Invalid value: "pods": must be a standard resource for'
            " containers",
            'spec.containers[0].resources.requests[pods]: Invalid value: "pods": must be a standard resource for'
            " containers",
        ],
    ),
    (
        container(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
        ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
    ),
    (
        container(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
        [
            'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive'
            " integer multiple"
            " of hugepages-2Mi",
            'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer'
            " multiple of hugepages-2Mi",
        ],
    ),
    (
        container(resources={"claims": [{"name": "x"}]}),
        [
            'spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in'
            " pod.spec.resourceClaims"
            " which is empty"
        ],
    ),
    (
        {
            **container(
                resources={"claims": [{"name": "a", "request": "x"}, {"name": "a", "request": "y"}, {"name": "a"}]}
            ),
            "resourceClaims": [{"name": "a", "resourceClaimName": "b"}],
        },
        ['spec.containers[0].resources.claims[2]: Duplicate value: "a"'] * 2,
    ),
    (
        {"resourceClaims": [{"name": "a"}]},
        [
            "spec.resourceClaims[0]: Invalid value:"
            ' {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}:'
            " must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        ],
    ),
    (
        {"resources": {"limits": {"storage": "1"}}},
        [
            'spec.resources.limits[storage]: Unsupported value: "storage": supported values: "cpu",'
            ' "hugepages-", "memory"'
        ],
    ),
    (
        {"resources": {"requests": {"cpu": "1"}}, **container(resources={"requests": {"cpu": "2"}})},
        [
            'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate'
            " container requests"
            " of 2"
        ],
    ),
]

VOLUMES: list[tuple[Struct, list[str]]] = [
    ({"volumes": [{"name": ""}]}, ["spec.volumes[0].name: Required value"]),
    ({"volumes": [{"name": "a"}, {"name": "a"}]}, ['spec.volumes[1].name: Duplicate value: "a"']),
    (
        {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    (
        {"volumes": [{"name": "a", "hostPath": {"path": "/a/../b", "type": "X"}}]},
        [
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            'spec.volumes[0].hostPath.type: Unsupported value: "X": supported values: "", "BlockDevice", "CharDevice",'
            ' "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ],
    ),
    ({"volumes": [{"name": "a", "gcePersistentDisk": {}}]}, ["spec.volumes[0].persistentDisk.pdName: Required value"]),
    (
        {"volumes": [{"name": "a", "emptyDir": {}, "cephfs": {"monitors": ["m"]}, "downwardAPI": {}}]},
        [
            "spec.volumes[0].cephFS: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[0].downwarAPI: Forbidden: may not specify more than 1 volume type",
        ],
    ),
    (
        {
            "volumes": [
                {"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "..x"}], "defaultMode": 512}}
            ]
        },
        [
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both"
            " inclusive",
            "spec.volumes[0].secret.items[0].path: Invalid value: \"..x\": must not start with '..'",
        ],
    ),
    (
        {"volumes": [{"name": "a", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}]},
        ["spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
    ),
    (
        {
            "volumes": [
                {
                    "name": "a",
                    "projected": {
                        "sources": [
                            {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                        ]
                    },
                }
            ]
        },
        ['spec.volumes[0].projected: Invalid value: "p": conflicting duplicate paths'],
    ),
    (
        {"volumes": [{"name": "a", "iscsi": {"targetPortal": "p", "iqn": "iqn.bad", "lun": 300}}]},
        [
            'spec.volumes[0].iscsi.iqn: Invalid value: "iqn.bad": must be valid format',
            "spec.volumes[0].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
        ],
    ),
    (
        {"volumes": [{"name": "e", "ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {}}}}]},
        [
            "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is"
            " required",
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ],
    ),
    (
        container(volumeMounts=[{"name": "x", "mountPath": "/a"}, {"name": "x", "mountPath": "/a"}]),
        [
            'spec.containers[0].volumeMounts[0].name: Not found: "x"',
            'spec.containers[0].volumeMounts[1].name: Not found: "x"',
            'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
        ],
    ),
    (
        {
            "volumes": [{"name": "v"}],
            **container(
                volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "../x", "mountPropagation": "Bidirectional"}]
            ),
        },
        [
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'",
            "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is"
            " available only"
            " to privileged containers",
        ],
    ),
    (
        {"volumes": [{"name": "v"}], **container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}])},
        [
            'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of'
            " PersistentVolumeClaim or Ephemeral for block mode"
        ],
    ),
]

POD_WIDE: list[tuple[Struct, list[str]]] = [
    (
        {"restartPolicy": "X"},
        ['spec.restartPolicy: Unsupported value: "X": supported values: "Always", "OnFailure", "Never"'],
    ),
    ({"dnsPolicy": "None"}, ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"]),
    (
        {"dnsConfig": {"nameservers": ["x", "1.1.1.1"], "options": [{}]}},
        [
            'spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or'
            " 2001:db8::ffff)",
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    ),
    (
        {"hostNetwork": True, **container(ports=[{"containerPort": 80, "hostPort": 81}])},
        [
            "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when"
            " `hostNetwork` is true"
        ],
    ),
    (
        {"hostUsers": False, "hostPID": True},
        ["spec.HostPID: Forbidden: when `hostUsers` is false"],
    ),
    (
        {"tolerations": [{"operator": "<"}, {"key": "a", "operator": "Lt", "value": "1"}]},
        [
            'spec.tolerations[0].operator: Invalid value: "\\u003c": operator must be Exists when `key` is empty,'
            " which means"
            ' "match all values and all keys"',
            'spec.tolerations[0].operator: Unsupported value: "\\u003c": supported values: "Equal", "Exists"',
            'spec.tolerations[1].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
        ],
    ),
    (
        {"schedulingGates": [{"name": "a"}, {"name": "a"}], "nodeName": "n"},
        [
            'spec.schedulingGates[1]: Duplicate value: "a"',
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ],
    ),
    (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
            ]
        },
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            'spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"',
            "spec.topologySpreadConstraints[1].minDomains: Invalid value: 0: must be greater than zero",
        ],
    ),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        [
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms:"
            " Required value:"
            " must have at least one node selector term"
        ],
    ),
    (
        {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}
                    ]
                }
            }
        },
        [
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value:"
            " 0: must be in"
            " the range 1-100"
        ],
    ),
    (
        {"securityContext": {"runAsUser": -1, "sysctls": [{"name": "net.a", "value": "1"}]}, "hostNetwork": True},
        [
            "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            'spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be specified when'
            " 'hostNetwork' is true",
        ],
    ),
    (
        {"securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "x"}}},
        [
            "spec.securityContext.seccompProfile.localhostProfile: Invalid value:"
            ' {"Type":"Unconfined","LocalhostProfile":"x"}:'
            " can only be set when seccomp type is Localhost"
        ],
    ),
    (
        container(securityContext={"procMount": "Unmasked"}),
        [
            'spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false'
            " to use `Unmasked`"
        ],
    ),
    (
        {"os": {"name": "windows"}, "hostPID": True, **container(securityContext={"runAsUser": 1})},
        [
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        ],
    ),
    (
        container(securityContext={"windowsOptions": {"hostProcess": True}}),
        ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"],
    ),
    (
        {"hostnameOverride": "a" * 65},
        ["spec.hostnameOverride: Too long: may not be more than 64 bytes"],
    ),
    (
        {"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    (
        {"preemptionPolicy": "X"},
        ['spec.preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"'],
    ),
]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [*CONTAINERS, *ENVIRONMENT, *PROBES, *RESOURCES, *VOLUMES, *POD_WIDE],
    ids=lambda value: str(value)[:60],
)
def test_errors(spec: Struct, wanted: list[str]) -> None:
    assert errors_of(spec) == wanted


def test_a_switch_of_the_cluster_allows_privileged_containers() -> None:
    assert new_options(default_gates() | {ALLOW_PRIVILEGED}).allow_privileged
    assert not new_options(default_gates()).allow_privileged


def test_privileged_containers_need_a_server_that_allows_them() -> None:
    assert errors_of(container(securityContext={"privileged": True}), privileged=False) == [
        "spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
    ]


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        (
            {"controller.kubernetes.io/pod-deletion-cost": "+1"},
            [
                'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be'
                " a 32bit integer"
            ],
        ),
        (
            {"kubernetes.io/config.mirror": "x"},
            [
                'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName'
                " if mirror pod"
                " annotation is set"
            ],
        ),
        (
            {"container.apparmor.security.beta.kubernetes.io/nope": "bad"},
            [
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope]: Invalid value:"
                ' "nope": container'
                " not found",
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope]: Invalid value:"
                ' "bad": invalid'
                ' AppArmor profile name: "bad"',
            ],
        ),
        (
            {"seccomp.security.alpha.kubernetes.io/pod": "localhost//x"},
            [
                'metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "/x": must be a'
                " relative path"
            ],
        ),
        ({"scheduler.alpha.kubernetes.io/tolerations": '[{"operator":"Exists"}]'}, []),
    ],
)
def test_annotations(annotations: dict[str, str], wanted: list[str]) -> None:
    assert errors_of({}, annotations) == wanted


def test_templates_have_labels_checked_and_no_ephemeral_containers() -> None:
    raw = {
        "metadata": {"labels": {"a b": "c"}},
        "spec": {**SOUND, "ephemeralContainers": [{"name": "e", "image": "i"}]},
    }
    template, _ = decode(types.struct("core.v1.PodTemplateSpec"), raw)
    default_pod_template(template)
    errs: list[FieldError] = []
    validate_pod_template(template, Path("spec", "template"), errs, PodValidationOptions())
    assert [error.field for error in errs] == ["spec.template.labels", "spec.template.spec.ephemeralContainers"]


@pytest.mark.parametrize(
    ("old", "option"),
    [
        ({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}, "allow_comparing_tolerations"),
        ({"hostUsers": False, "hostNetwork": True}, "allow_user_namespaces_with_host_network"),
        ({"containers": [{"resources": {"limits": {"hugepages-2Mi": "3Mi"}}}]}, "allow_indivisible_huge_pages"),
        ({"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.x"}]}}, "allow_host_sysctls"),
        ({"volumes": [{"name": "v", "image": {}}]}, "allow_empty_image_volume_reference"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "/t"}}]}}]},
            "allow_non_local_token_path",
        ),
        (
            {"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"a b": ""}}}]},
            "allow_invalid_spread_selector",
        ),
        (
            {"initContainers": [{"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]},
            "allow_restart_container_for_init",
        ),
    ],
)
def test_what_is_stored_stays_updatable(old: Struct, option: str) -> None:
    options, new = options_for(default_gates(), old, {}), new_options(default_gates())
    changed = [name for name in PodValidationOptions.__slots__ if getattr(options, name) != getattr(new, name)]
    assert changed == [option]
    assert getattr(options, option)


def test_refused_selectors_are_shown_in_the_order_of_their_type() -> None:
    selector = {"matchExpressions": [{"operator": "Exists", "key": "b"}], "matchLabels": {"z": "1", "a": "2"}}
    bundle = {"name": "x", "path": "p", "labelSelector": selector}
    volume = {"name": "v", "projected": {"sources": [{"clusterTrustBundle": bundle}]}}
    assert errors_of({"volumes": [volume]}) == [
        "spec.volumes[0].projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: "
        '{"matchLabels":{"a":"2","z":"1"},"matchExpressions":[{"key":"b","operator":"Exists"}]}: labelSelector must be'
        " unset if name is specified"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[{]", "invalid character ']' looking for beginning of object key string"),
        ("1", "json: cannot unmarshal number into Go value of type []core.Toleration"),
        (
            '[{"tolerationSeconds": "1"}]',
            "json: cannot unmarshal string into Go struct field Toleration.TolerationSeconds of type int64",
        ),
    ],
)
def test_tolerations_in_annotations_that_cannot_be_read(text: str, why: str) -> None:
    key = "scheduler.alpha.kubernetes.io/tolerations"
    assert errors_of({}, {key: text}) == [f'metadata.annotations: Invalid value: "{key}": {why}']


def test_parts_of_a_security_context_that_are_there_are_shown_whole() -> None:
    context = {"privileged": True, "allowPrivilegeEscalation": False}
    (told,) = errors_of(container(securityContext={**context, "capabilities": {}, "seLinuxOptions": {}}))
    assert '"Capabilities":{"Add":null,"Drop":null}' in told
    assert '"SELinuxOptions":{"User":"","Role":"","Type":"","Level":""},"WindowsOptions":null' in told


def test_what_is_a_pointer_is_quoted_as_json() -> None:
    windows = {"runAsUserName": "a<b", "gmsaCredentialSpecName": ">"}
    told = errors_of(container(securityContext={"windowsOptions": windows, "appArmorProfile": {
        "type": "Unconfined", "localhostProfile": "&"}}))  # fmt: skip
    shown = sorted(error.split(": ")[2] for error in told if ".windowsOptions" in error or "localhostProfile" in error)
    assert shown == ['"\\u0026"', '"\\u003e"', '"a\\u003cb"']


def test_names_of_resources_are_quoted_as_json() -> None:
    told = errors_of(container(resources={"limits": {"a<b": "1"}}))
    assert told and all('"a\\u003cb"' in error for error in told)


@pytest.mark.parametrize("gates", [default_gates(), frozenset[str]()])
@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "a", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
        {"containers": [{"name": "a"}], "tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]},
    ],
)
@pytest.mark.parametrize("cost", ["1", "much"])
def test_a_status_is_judged_by_the_same_options_as_the_whole_pod(
    gates: frozenset[str], spec: dict[str, Any], cost: str
) -> None:
    metadata = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}
    whole, status = options_for(gates, spec, metadata, is_pod=True), options_for_status(gates, spec, metadata)
    for name in (
        "is_pod",
        "gates",
        "allow_invalid_deletion_cost",
        "allow_comparing_tolerations",
        "allow_restart_of_all",
        "strict_addresses",
    ):
        assert getattr(status, name) == getattr(whole, name), name
