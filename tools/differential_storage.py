"""Conversations about volumes, classes and claims, and about flow control: objects that change in sensible ways."""

from __future__ import annotations

import random
from typing import Any

from differential_admission import APPLY, MERGE, STRATEGIC, dump
from differential_answers import JSON, Request

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_STORAGE = "/apis/storage.k8s.io/v1"
_FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
Options = dict[str, tuple[Any, ...]]

_TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
_KINDS: dict[str, tuple[str, str, dict[str, Any], Options]] = {
    "persistentvolumes": (
        "/api/v1",
        "PersistentVolume",
        {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/p"}},
        {
            "capacity": ({"storage": "2Gi"}, {"storage": "0"}, {}, {"cpu": "1"}, {"storage": "1Gi", "cpu": "1"}),
            "accessModes": (["ReadOnlyMany", "ReadWriteMany"], ["ReadWriteOncePod", "ReadWriteOnce"], ["Odd"], []),
            "hostPath": ({"path": "/q"}, {"path": "../x"}, {"path": "/p", "type": "Directory"}, {"path": ""}, None),
            "nfs": ({"server": "s", "path": "/x"}, {"server": "", "path": "x"}),
            "csi": (
                {"driver": "d.example", "volumeHandle": "h"},
                {"driver": "D", "volumeHandle": ""},
                {"driver": "d", "volumeHandle": "h", "fsType": "ext4", "nodePublishSecretRef": {"name": "n"}},
            ),
            "local": ({"path": "/l"}, {"path": "l"}),
            "persistentVolumeReclaimPolicy": ("Retain", "Delete", "Recycle", "Odd"),
            "storageClassName": ("a", "B", ""),
            "volumeMode": ("Block", "Filesystem", "Odd"),
            "mountOptions": (["ro"], []),
            "claimRef": ({"name": "c", "namespace": "n", "uid": "u"}, {"name": "c"}, {"namespace": "n"}),
            "nodeAffinity": ({"required": {"nodeSelectorTerms": [_TERM]}}, {"required": {"nodeSelectorTerms": []}}, {}),
            "volumeAttributesClassName": ("v", "V", ""),
        },
    ),
    "persistentvolumeclaims": (
        "/api/v1/namespaces/{}",
        "PersistentVolumeClaim",
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        {
            "accessModes": (["ReadOnlyMany"], ["ReadWriteOncePod", "ReadWriteOnce"], [], ["Odd"]),
            "resources": (
                {"requests": {"storage": "2Gi"}},
                {"requests": {"storage": "512Mi"}},
                {"requests": {}},
                {"requests": {"storage": "1Gi"}, "limits": {"storage": "1"}},
                {"requests": {"storage": "-1"}},
            ),
            "storageClassName": ("a", "B", ""),
            "volumeName": ("v", ""),
            "volumeMode": ("Block", "Odd"),
            "selector": ({"matchLabels": {"a": "b"}}, {"matchLabels": {"a b": "c"}}),
            "dataSource": (
                {"kind": "PersistentVolumeClaim", "name": "o"},
                {"kind": "K", "name": "o", "apiGroup": "g.example"},
                {"kind": "", "name": ""},
            ),
            "dataSourceRef": (
                {"kind": "K", "name": "o", "apiGroup": "g.example"},
                {"kind": "Pod", "name": "p"},
                {"kind": "K", "name": "o", "apiGroup": "g.example", "namespace": "n"},
            ),
            "volumeAttributesClassName": ("v", "V", "w"),
        },
    ),
    "storageclasses": (
        _STORAGE,
        "StorageClass",
        {"provisioner": "p.example"},
        {
            "provisioner": ("q", "", "Bad Name"),
            "parameters": ({"a": "b"}, {"": "x"}, {}),
            "reclaimPolicy": ("Retain", "Delete", "Recycle", "Odd"),
            "volumeBindingMode": ("WaitForFirstConsumer", "Immediate", "Odd"),
            "allowVolumeExpansion": (True, False),
            "mountOptions": (["ro"],),
            "allowedTopologies": (
                [{"matchLabelExpressions": [{"key": "k", "values": ["v", "v"]}]}],
                [{}, {}],
                [{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}],
            ),
        },
    ),
    "volumeattachments": (
        _STORAGE,
        "VolumeAttachment",
        {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
        {
            "attacher": ("b", "", "Bad Name"),
            "nodeName": ("m", "", "M"),
            "source": (
                {"persistentVolumeName": ""},
                {},
                {"persistentVolumeName": "q"},
                {
                    "persistentVolumeName": "p",
                    "inlineVolumeSpec": {
                        "capacity": {"storage": "1"},
                        "accessModes": ["ReadWriteOnce"],
                        "csi": {"driver": "d", "volumeHandle": "h"},
                    },
                },
            ),
        },
    ),
    "csidrivers": (
        _STORAGE,
        "CSIDriver",
        {},
        {
            "attachRequired": (True, False, None),
            "podInfoOnMount": (True, False),
            "volumeLifecycleModes": (["Ephemeral"], ["Persistent", "Ephemeral"], ["Odd"], []),
            "storageCapacity": (True, False),
            "fsGroupPolicy": ("None", "File", "Odd"),
            "tokenRequests": (
                [{"audience": "a"}],
                [{"audience": "a"}, {"audience": "a"}],
                [{"audience": "b", "expirationSeconds": 5}],
            ),
            "requiresRepublish": (True, False),
            "seLinuxMount": (True, False),
            "nodeAllocatableUpdatePeriodSeconds": (10, 5, 0),
            "serviceAccountTokenInSecrets": (True, False),
        },
    ),
    "csinodes": (
        _STORAGE,
        "CSINode",
        {"drivers": [{"name": "d.example", "nodeID": "n"}]},
        {
            "drivers": (
                [],
                [{"name": "d.example", "nodeID": "m"}],
                [{"name": "d.example", "nodeID": "n", "topologyKeys": ["a", "a"]}],
                [{"name": "e.example", "nodeID": ""}],
                [{"name": "d.example", "nodeID": "n", "allocatable": {"count": -1}}],
                [{"name": "d.example", "nodeID": "n", "allocatable": {"count": 5}}],
                [{"name": "D!", "nodeID": "x" * 260}],
            ),
        },
    ),
    "volumeattributesclasses": (
        _STORAGE,
        "VolumeAttributesClass",
        {"driverName": "d.example", "parameters": {"a": "b"}},
        {"driverName": ("e", "", "D!"), "parameters": ({}, {"a": "c"}, {"": ""}, None)},
    ),
    "csistoragecapacities": (
        _STORAGE + "/namespaces/{}",
        "CSIStorageCapacity",
        {"storageClassName": "s", "capacity": "1Gi"},
        {
            "storageClassName": ("t", "", "T!"),
            "capacity": ("2Gi", "-1", None),
            "maximumVolumeSize": ("1Gi", "-1"),
            "nodeTopology": ({"matchLabels": {"a": "b"}}, {"matchLabels": {"a b": "c"}}, {}),
        },
    ),
    "flowschemas": (
        _FLOWS,
        "FlowSchema",
        {
            "priorityLevelConfiguration": {"name": "global-default"},
            "matchingPrecedence": 9000,
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/none"]}],
                }
            ],
        },
        {
            "priorityLevelConfiguration": ({"name": "none"}, {"name": ""}, {"name": "Bad Name"}, {"name": "exempt"}),
            "matchingPrecedence": (1, 0, 10001, 9999, -1),
            "distinguisherMethod": ({"type": "ByUser"}, {"type": "ByNamespace"}, {"type": "Odd"}, None),
            "rules": (
                [],
                [{"subjects": []}],
                [{"subjects": [{"kind": "Group", "group": {"name": ""}}]}],
                [
                    {
                        "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "n"}}],
                        "resourceRules": [
                            {"verbs": ["get", "*"], "apiGroups": [""], "resources": ["x"], "namespaces": ["*"]}
                        ],
                    }
                ],
                [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "nobody"}, "group": {"name": "g"}}],
                        "resourceRules": [
                            {"verbs": ["get"], "apiGroups": ["*"], "resources": ["nothings"], "clusterScope": True}
                        ],
                    }
                ],
                [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["x", "/a*", "/b/*"]}],
                    }
                ],
            ),
        },
    ),
    "prioritylevelconfigurations": (
        _FLOWS,
        "PriorityLevelConfiguration",
        {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}},
        {
            "type": ("Exempt", "Odd", "Limited"),
            "limited": (
                {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}},
                {"limitResponse": {"type": "Queue"}},
                {"limitResponse": {"type": "Queue", "queuing": {"queues": 4, "handSize": 5}}},
                {"nominalConcurrencyShares": -1},
                {"lendablePercent": 101, "limitResponse": {"type": "Reject"}},
                {"borrowingLimitPercent": -1, "lendablePercent": 50, "limitResponse": {"type": "Reject"}},
                None,
                {"limitResponse": {"type": "Reject", "queuing": {"queues": 1}}},
                {
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 20000000, "handSize": 8, "queueLengthLimit": 0},
                    }
                },
            ),
            "exempt": ({}, {"lendablePercent": 5, "nominalConcurrencyShares": 1}, {"lendablePercent": -5}, None),
        },
    ),
}
_FLAT = ("storageclasses", "volumeattributesclasses", "csistoragecapacities")


def storage(choice: random.Random, names: Any) -> list[Request]:
    """Volumes, claims, classes and attachments that change, and what is reported about them."""
    return _changing(choice, names, [each for each in _KINDS if not _KINDS[each][0].startswith(_FLOWS)])


def flows(choice: random.Random, names: Any) -> list[Request]:
    """Flow schemas and priority levels that change; what a controller writes into them is not looked at."""
    return _changing(choice, names, [each for each in _KINDS if _KINDS[each][0].startswith(_FLOWS)])


def _changing(choice: random.Random, names: Any, resources: list[str]) -> list[Request]:
    resource = choice.choice(resources)
    root, kind, first, options = _KINDS[resource]
    where = f"{root.format(names.namespace)}/{resource}"
    path, flat, settled = f"{where}/{names.name}", resource in _FLAT, not root.startswith(_FLOWS)
    version = root.removeprefix("/apis/").removeprefix("/api/").partition("/namespaces")[0]
    head = {"apiVersion": version, "kind": kind, "metadata": {"name": names.name}}

    def some(most: int) -> dict[str, Any]:
        count = min(len(options), choice.randrange(most + 1))
        return {name: choice.choice(options[name]) for name in choice.sample(sorted(options), count)}

    def whole(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        body = {**head, "metadata": {"name": names.name, **metadata}}
        return {**body, **spec} if flat else {**body, "spec": spec}

    # What a controller writes comes at its own time: of what it writes into, only dry runs are made.
    dry = "" if settled else "?dryRun=All"
    said = [Request("POST", where + dry, dump(whole({**first, **some(3)})), unordered=True)]
    if settled:
        said.append(Request("POST", where, dump(whole(first)), keeps="o"))
    for _ in range(choice.randrange(3, 8)):
        few = some(2)
        patch = few if flat else {"spec": few}
        version_of = choice.choice(({}, {"resourceVersion": "$(o.rv)"}))
        way = choice.randrange(6 if settled else 2)
        if way == 0:
            said.append(Request("POST", f"{where}?dryRun=All", dump(whole({**first, **few})), unordered=True))
        elif way == 1:
            said.append(
                Request(
                    "PATCH",
                    f"{path}?dryRun=All&fieldManager=m&force=true",
                    dump(whole({**first, **few})),
                    APPLY,
                    unordered=True,
                )
            )
        elif way == 2:
            said.append(Request("PUT", path, dump(whole({**first, **few}, **version_of)), unordered=True))
        elif way == 3:
            kind_of = choice.choice((MERGE, STRATEGIC))
            said.append(Request("PATCH", path, dump(patch), kind_of, unordered=True))
        elif way == 4:
            said.append(
                Request("PATCH", f"{path}/status", dump({"status": _reported(choice, resource)}), MERGE, unordered=True)
            )
        else:
            said.append(Request("GET", path, keeps="o", accept=choice.choice((JSON, _TABLE))))
    return [
        *said,
        Request("GET", path),
        Request("PATCH", path, b'{"metadata":{"finalizers":null}}', MERGE),
        Request("DELETE", path),
    ]


def _reported(choice: random.Random, resource: str) -> dict[str, Any]:
    reports: dict[str, tuple[dict[str, Any], ...]] = {
        "persistentvolumes": ({"phase": "Bound"}, {"phase": "Odd"}, {"message": "m", "reason": "r"}, {}),
        "persistentvolumeclaims": (
            {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            {"phase": "Odd"},
            {"capacity": {"storage": "-1"}},
            {
                "allocatedResources": {"storage": "2Gi"},
                "allocatedResourceStatuses": {"storage": choice.choice(("ControllerResizeInProgress", "Odd"))},
            },
            {"conditions": [{"type": "Resizing", "status": "True"}]},
            {
                "currentVolumeAttributesClassName": "v",
                "modifyVolumeStatus": {
                    "status": choice.choice(("InProgress", "Odd", "")),
                    "targetVolumeAttributesClassName": "v",
                },
            },
        ),
        "volumeattachments": (
            {"attached": True},
            {"attached": False, "attachError": {"message": "m", "errorCode": choice.choice((1, -1))}},
            {"attached": True, "attachmentMetadata": {"a": "b", "c": "x" * 2000}},
            {"detachError": {"message": "x" * 1030, "time": "2020-01-01T00:00:00Z"}},
        ),
    }
    return choice.choice(reports.get(resource, ({},)))
