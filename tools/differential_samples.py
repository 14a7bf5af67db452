"""Sound objects of many built-in kinds, for conversations that change one thing about them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """An object, and where it is created."""

    resource: str
    body: dict[str, Any]
    namespaced: bool = True


def _of(version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, **fields}


_ROOT = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBbzCCARWgAwIBAgIUaxrxhqXg9HqGblXm29jSqx3WBhswCgYIKoZIzj0EAwIw\n"
    "DDEKMAgGA1UEAwwBYTAgFw0yNjExMjAwMDQ1MzlaGA8yMTI2MTAyNzAwNDUzOVow\n"
    "DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABN0YN19i/H5T\n"
    "M1/556PCYDAG1k8GPbSSQ7uuuzDFuT3kiiz0xqDq0FAqCwNpHPg4IZlBSwA9FXNY\n"
    "EKdh3NLV4FKjUzBRMB0GA1UdDgQWBBQLPTMfJMpUurylx/JCCgwtJ3ZL4DAfBgNV\n"
    "HSMEGDAWgBQLPTMfJMpUurylx/JCCgwtJ3ZL4DAPBgNVHRMBAf8EBTADAQH/MAoG\n"
    "CCqGSM49BAMCA0gAMEUCIGd0HyG/Ng6wVXxVED8Ihr6ikYOqe+f5Z1LGtCUPlpdJ\n"
    "AiEA1Bje89OtouzRJo9ktDGiBmxfBu10Sy74AFwDtR7TG88=\n"
    "-----END CERTIFICATE-----\n"
)

_CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "i",
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
    "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
    "securityContext": {"runAsUser": 1, "capabilities": {"add": ["A"]}},
}
_POD: dict[str, Any] = {
    "containers": [_CONTAINER],
    "volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "a", "path": "b"}]}}],
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"a": "b"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        }
    },
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}],
    "dnsConfig": {"nameservers": ["1.2.3.4"], "options": [{"name": "o"}]},
    "terminationGracePeriodSeconds": 5,
}
_LABELS = {"app": "a"}
_SELECTOR = {"matchLabels": _LABELS}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}
_ONCE = {"spec": {**_POD, "restartPolicy": "Never"}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_WEBHOOK = {
    "name": "a.b.c",
    "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p", "port": 443}},
    "rules": [
        {"operations": ["CREATE"], "apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["nothings"]}
    ],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
    "timeoutSeconds": 1,
    "matchConditions": [{"name": "m", "expression": "true"}],
}
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_SUBJECT = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
_POLICY = {
    "matchConstraints": {"resourceRules": _WEBHOOK["rules"]},
    "validations": [{"expression": "true", "message": "m", "reason": "Invalid"}],
    "variables": [{"name": "v", "expression": "1"}],
    "failurePolicy": "Ignore",
}
_DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 1}}]}}

SAMPLES: tuple[Sample, ...] = (
    Sample("pods", _of("v1", "Pod", spec=_POD)),
    Sample(
        "services",
        _of(
            "v1",
            "Service",
            spec={
                "selector": _LABELS,
                "clusterIP": "None",
                "ports": [{"name": "p", "port": 80, "targetPort": 80, "protocol": "TCP"}],
            },
        ),
    ),
    Sample("services", _of("v1", "Service", spec={"selector": _LABELS, "ports": [{"name": "p", "port": 80}]})),
    Sample("services", _of("v1", "Service", spec={"type": "NodePort", "ports": [{"port": 80}]})),
    Sample("services", _of("v1", "Service", spec={"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "UDP"}]})),
    Sample("services", _of("v1", "Service", spec={"type": "ExternalName", "externalName": "h.example"})),
    Sample("secrets", _of("v1", "Secret", type="Opaque", data={"a": "YQ=="}, stringData={"b": "c"})),
    Sample("configmaps", _of("v1", "ConfigMap", data={"a": "b"}, binaryData={"c": "YQ=="})),
    Sample("serviceaccounts", _of("v1", "ServiceAccount", secrets=[{"name": "s"}], imagePullSecrets=[{"name": "i"}])),
    Sample("endpoints", _of("v1", "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}])),
    Sample(
        "limitranges",
        _of("v1", "LimitRange", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Ti"}}]}),
    ),
    Sample(
        "resourcequotas",
        _of("v1", "ResourceQuota", spec={"hard": {"count/widgets.example": "9"}, "scopes": ["BestEffort"]}),
    ),
    Sample("persistentvolumeclaims", _of("v1", "PersistentVolumeClaim", spec=_CLAIM)),
    Sample("podtemplates", _of("v1", "PodTemplate", template=_TEMPLATE)),
    Sample(
        "replicationcontrollers",
        _of("v1", "ReplicationController", spec={"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}),
    ),
    Sample(
        "events", _of("v1", "Event", involvedObject={"kind": "Pod", "name": "p"}, reason="r", type="Normal", count=1)
    ),
    Sample(
        "deployments",
        _of(
            "apps/v1",
            "Deployment",
            spec={
                "replicas": 1,
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            },
        ),
    ),
    Sample(
        "statefulsets",
        _of(
            "apps/v1",
            "StatefulSet",
            spec={
                "serviceName": "s",
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": _CLAIM}],
            },
        ),
    ),
    Sample("daemonsets", _of("apps/v1", "DaemonSet", spec={"selector": _SELECTOR, "template": _TEMPLATE})),
    Sample(
        "replicasets", _of("apps/v1", "ReplicaSet", spec={"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE})
    ),
    Sample("controllerrevisions", _of("apps/v1", "ControllerRevision", revision=1, data={"a": 1})),
    Sample(
        "jobs", _of("batch/v1", "Job", spec={"template": _ONCE, "completions": 1, "parallelism": 1, "backoffLimit": 2})
    ),
    Sample(
        "cronjobs",
        _of("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _ONCE}}}),
    ),
    Sample(
        "ingresses",
        _of(
            "networking.k8s.io/v1",
            "Ingress",
            spec={
                "rules": [
                    {
                        "host": "h.example",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ],
                "tls": [{"hosts": ["h"]}],
            },
        ),
    ),
    Sample(
        "networkpolicies",
        _of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": _SELECTOR,
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                        "ports": [{"port": 80, "endPort": 90}],
                    }
                ],
            },
        ),
    ),
    Sample(
        "poddisruptionbudgets",
        _of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%", "selector": _SELECTOR}),
    ),
    Sample(
        "horizontalpodautoscalers",
        _of(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={
                "maxReplicas": 3,
                "minReplicas": 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                    }
                ],
            },
        ),
    ),
    Sample("roles", _of("rbac.authorization.k8s.io/v1", "Role", rules=[_RULE])),
    Sample(
        "rolebindings",
        _of(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            subjects=[_SUBJECT],
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        ),
    ),
    Sample(
        "leases",
        _of(
            "coordination.k8s.io/v1",
            "Lease",
            spec={"holderIdentity": "h", "leaseDurationSeconds": 5, "renewTime": "2020-01-01T00:00:00.000000Z"},
        ),
    ),
    Sample(
        "endpointslices",
        _of(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            addressType="IPv4",
            ports=[{"name": "p", "port": 80}],
            endpoints=[{"addresses": ["1.2.3.4"], "conditions": {"ready": True}, "zone": "z"}],
        ),
    ),
    Sample(
        "csistoragecapacities",
        _of("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s", capacity="1Gi", nodeTopology=_SELECTOR),
    ),
    Sample(
        "clusterroles",
        _of(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            rules=[_RULE, {"nonResourceURLs": ["/x"], "verbs": ["get"]}],
            aggregationRule={"clusterRoleSelectors": [_SELECTOR]},
        ),
        False,
    ),
    Sample(
        "clusterrolebindings",
        _of(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            subjects=[_SUBJECT],
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        ),
        False,
    ),
    Sample("namespaces", _of("v1", "Namespace", metadata={"labels": {"a": "b"}}), False),
    Sample(
        "nodes",
        _of("v1", "Node", spec={"podCIDR": "10.0.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule"}]}),
        False,
    ),
    Sample(
        "persistentvolumes",
        _of(
            "v1",
            "PersistentVolume",
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/p"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        ),
        False,
    ),
    Sample(
        "storageclasses",
        _of(
            "storage.k8s.io/v1",
            "StorageClass",
            provisioner="p",
            parameters={"a": "b"},
            reclaimPolicy="Delete",
            allowedTopologies=[{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}],
        ),
        False,
    ),
    Sample(
        "csidrivers",
        _of("storage.k8s.io/v1", "CSIDriver", spec={"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}),
        False,
    ),
    Sample(
        "volumeattachments",
        _of(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
        ),
        False,
    ),
    Sample("priorityclasses", _of("scheduling.k8s.io/v1", "PriorityClass", value=5, preemptionPolicy="Never"), False),
    Sample(
        "runtimeclasses", _of("node.k8s.io/v1", "RuntimeClass", handler="h", overhead={"podFixed": {"cpu": "1"}}), False
    ),
    Sample(
        "ingressclasses",
        _of(
            "networking.k8s.io/v1",
            "IngressClass",
            spec={"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "apiGroup": "g"}},
        ),
        False,
    ),
    Sample(
        "validatingwebhookconfigurations",
        _of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=[_WEBHOOK]),
        False,
    ),
    Sample(
        "mutatingwebhookconfigurations",
        _of(
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            webhooks=[{**_WEBHOOK, "reinvocationPolicy": "Never"}],
        ),
        False,
    ),
    Sample(
        "validatingadmissionpolicies",
        _of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", spec=_POLICY),
        False,
    ),
    Sample(
        "validatingadmissionpolicybindings",
        _of(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            spec={"policyName": "nobody", "validationActions": ["Deny"]},
        ),
        False,
    ),
    Sample(
        "flowschemas",
        _of(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            spec={
                "priorityLevelConfiguration": {"name": "global-default"},
                "matchingPrecedence": 9000,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                        "resourceRules": [
                            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
                        ],
                    }
                ],
            },
        ),
        False,
    ),
    Sample(
        "prioritylevelconfigurations",
        _of(
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            spec={
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 1,
                    "limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 1, "queueLengthLimit": 5}},
                },
            },
        ),
        False,
    ),
    Sample("resourceclaims", _of("resource.k8s.io/v1", "ResourceClaim", spec=_DEVICES)),
    Sample("resourceclaimtemplates", _of("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": _DEVICES})),
    Sample(
        "deviceclasses",
        _of(
            "resource.k8s.io/v1",
            "DeviceClass",
            spec={"selectors": [{"cel": {"expression": "device.driver == 'd.example'"}}]},
        ),
        False,
    ),
    Sample(
        "resourceslices",
        _of(
            "resource.k8s.io/v1",
            "ResourceSlice",
            spec={
                "driver": "d.example",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": "d", "attributes": {"a": {"string": "b"}}, "capacity": {"memory": {"value": "1Gi"}}}
                ],
            },
        ),
        False,
    ),
    Sample(
        "csinodes",
        _of("storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "d.example", "nodeID": "n"}]}),
        False,
    ),
    Sample(
        "volumeattributesclasses",
        _of("storage.k8s.io/v1", "VolumeAttributesClass", driverName="d.example", parameters={"a": "b"}),
        False,
    ),
    Sample("servicecidrs", _of("networking.k8s.io/v1", "ServiceCIDR", spec={"cidrs": ["192.168.7.0/24"]}), False),
    Sample(
        "mutatingadmissionpolicies",
        _of(
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicy",
            spec={
                "matchConstraints": {"resourceRules": _WEBHOOK["rules"]},
                "reinvocationPolicy": "Never",
                "mutations": [
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
                ],
            },
        ),
        False,
    ),
    Sample(
        "certificatesigningrequests",
        _of(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            spec={"request": "YQ==", "signerName": "a.b/c", "usages": ["client auth"]},
        ),
        False,
    ),
    Sample(
        "events",
        _of(
            "events.k8s.io/v1",
            "Event",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingController="example.com/c",
            reportingInstance="c-1",
            action="Do",
            reason="Done",
            type="Normal",
            regarding={"kind": "Pod", "name": "p"},
            note="n",
        ),
    ),
    Sample(
        "horizontalpodautoscalers",
        _of(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            spec={
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 50,
            },
        ),
    ),
    Sample(
        "clustertrustbundles", _of("certificates.k8s.io/v1", "ClusterTrustBundle", spec={"trustBundle": _ROOT}), False
    ),
    Sample(
        "mutatingadmissionpolicybindings",
        _of("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", spec={"policyName": "none.example"}),
        False,
    ),
    Sample(
        "devicetaintrules",
        _of(
            "resource.k8s.io/v1",
            "DeviceTaintRule",
            spec={
                "deviceSelector": {"driver": "d.example", "pool": "p", "device": "none"},
                "taint": {"key": "a.example/k", "value": "v", "effect": "NoSchedule"},
            },
        ),
        False,
    ),
    Sample(
        "storageversionmigrations",
        _of(
            "storagemigration.k8s.io/v1",
            "StorageVersionMigration",
            spec={"resource": {"group": "apps", "resource": "deployments"}},
        ),
        False,
    ),
    Sample(
        "ipaddresses",
        _of(
            "networking.k8s.io/v1",
            "IPAddress",
            spec={"parentRef": {"group": "", "resource": "services", "namespace": "default", "name": "s"}},
        ),
        False,
    ),
)
"""None changes what later requests may do: limits never bind, webhooks and policies match nothing."""


def place(sample: Sample, namespace: str) -> str:
    """The path of its collection."""
    group, slash, version = sample.body["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if slash else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{sample.resource}" if sample.namespaced else f"{root}/{sample.resource}"


def sound(sample: Sample, name: str) -> dict[str, Any]:
    """A copy of a sample under a name."""
    body: dict[str, Any] = json.loads(json.dumps(sample.body))
    body["metadata"] = {**body.get("metadata", {}), "name": name}
    return body
