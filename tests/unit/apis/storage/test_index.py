import pytest

from pilothouse.apis import types
from pilothouse.apis.storage.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery import names
from pilothouse.machinery.schema.decoding import decode

KINDS = {
    "storageclasses": "StorageClass",
    "volumeattributesclasses": "VolumeAttributesClass",
    "csidrivers": "CSIDriver",
    "csinodes": "CSINode",
    "csistoragecapacities": "CSIStorageCapacity",
    "volumeattachments": "VolumeAttachment",
}


def made(resource: str, body: Object) -> Object:
    struct = types.struct(f"storage.v1.{KINDS[resource]}")
    obj = decode(struct, body)[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(resource: str, body: Object, old: Object | None = None) -> list[str]:
    strategy, obj = STRATEGIES[resource](), made(resource, body)
    if old is None:
        return [str(error) for error in strategy.validate(Context(), obj)]
    return [str(error) for error in strategy.validate_update(Context(), obj, made(resource, old))]


NOT_A_SUBDOMAIN = names.check_dns1123_subdomain("_")[0]
NOT_A_CASELESS_SUBDOMAIN = names.check_dns1123_subdomain_caseless("_")[0]
CLASS = {"provisioner": "a.example/b"}
ATTACHMENT = {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
DRIVER = {"name": "d.example", "nodeID": "n", "topologyKeys": ["zone"]}


@pytest.mark.parametrize(
    ("resource", "body", "expected"),
    [
        ("storageclasses", CLASS, []),
        (
            "storageclasses",
            {"reclaimPolicy": "Recycle", "volumeBindingMode": "Later"},
            [
                'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
                'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
                "provisioner: Required value",
            ],
        ),
        (
            "storageclasses",
            {
                **CLASS,
                "parameters": {"": "x"},
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": []}]}],
            },
            [
                'parameters: Invalid value: "": field can not be empty.',
                "allowedTopologies[0].matchLabelExpressions[0].values: Required value",
            ],
        ),
        (
            "storageclasses",
            {**CLASS, "parameters": {str(n): "" for n in range(513)}},
            ["parameters: Too long: may not be more than 512 bytes"],
        ),
        (
            "volumeattributesclasses",
            {},
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        ),
        ("volumeattachments", ATTACHMENT, []),
        (
            "volumeattachments",
            {"spec": {"attacher": "A_" + "a" * 70, "nodeName": "n", "source": {}}},
            [
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
                f'spec.attacher: Invalid value: "A_{"a" * 70}": {NOT_A_CASELESS_SUBDOMAIN}',
                "spec.attacher: Too long: may not be more than 63 characters",
            ],
        ),
        ("csidrivers", {"spec": {}}, []),
        (
            "csidrivers",
            {
                "spec": {
                    "tokenRequests": [{"audience": "a", "expirationSeconds": 1}, {"audience": "a"}],
                    "nodeAllocatableUpdatePeriodSeconds": 9,
                }
            },
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: "
                "may not specify a duration less than 10 minutes",
                'spec.tokenRequests[1].audience: Duplicate value: "a"',
                "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: "
                "must be greater than or equal to 10 seconds",
            ],
        ),
        (
            "csidrivers",
            {"spec": {"serviceAccountTokenInSecrets": True}},
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no "
                "tokenRequests are specified"
            ],
        ),
        ("csinodes", {"spec": {"drivers": [DRIVER]}}, []),
        (
            "csinodes",
            {
                "spec": {
                    "drivers": [
                        DRIVER,
                        {**DRIVER, "nodeID": "", "allocatable": {"count": -1}, "topologyKeys": ["a", "a"]},
                    ]
                }
            },
            [
                "spec.drivers[1].nodeID: Required value",
                "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
                'spec.drivers[1].name: Duplicate value: "d.example"',
                'spec.drivers[1]: Duplicate value: "a"',
            ],
        ),
        ("csistoragecapacities", {"storageClassName": "c", "capacity": "1Gi"}, []),
        (
            "csistoragecapacities",
            {"storageClassName": "c", "capacity": "-1"},
            ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
        ),
    ],
)
def test_errors_of_new_objects(resource: str, body: Object, expected: list[str]) -> None:
    assert errors_of(resource, body) == expected


@pytest.mark.parametrize(
    ("resource", "old", "body", "expected"),
    [
        ("storageclasses", CLASS, {**CLASS, "allowVolumeExpansion": True}, []),
        (
            "storageclasses",
            CLASS,
            {"provisioner": "b", "parameters": {"a": "b"}},
            [
                "provisioner: Invalid value: null: field is immutable",
                "parameters: Invalid value: null: field is immutable",
            ],
        ),
        (
            "volumeattributesclasses",
            {"driverName": "a", "parameters": {"a": "b"}},
            {"driverName": "b", "parameters": {"a": "c"}},
            [
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
            ],
        ),
        (
            "volumeattachments",
            ATTACHMENT,
            {"spec": {**ATTACHMENT["spec"], "attacher": ""}},
            ["spec.attacher: Required value", "spec: Invalid value: null: field is immutable"],
        ),
        (
            "volumeattachments",
            ATTACHMENT,
            {"spec": {**ATTACHMENT["spec"], "attacher": "_"}},
            [
                f'spec.attacher: Invalid value: "_": {NOT_A_SUBDOMAIN}',
                "spec: Invalid value: null: field is immutable",
            ],
        ),
        (
            "csidrivers",
            {"spec": {}},
            {"spec": {"attachRequired": False}},
            ["spec.attachedRequired: Invalid value: false: field is immutable"],
        ),
        (
            "csinodes",
            {"spec": {"drivers": [DRIVER]}},
            {"spec": {"drivers": [{**DRIVER, "allocatable": {"count": 3}}]}},
            [],
        ),
        (
            "csinodes",
            {"spec": {"drivers": [DRIVER]}},
            {"spec": {"drivers": [{**DRIVER, "nodeID": "m"}]}},
            [
                'spec.drivers: Invalid value: {"Name":"d.example","NodeID":"m","TopologyKeys":["zone"],'
                '"Allocatable":null}: field is immutable'
            ],
        ),
        (
            "csinodes",
            {"spec": {"drivers": [{"name": "d.example", "nodeID": "n"}]}},
            {"spec": {"drivers": [{"name": "d.example", "nodeID": "n", "topologyKeys": []}]}},
            [],
        ),
        (
            "csistoragecapacities",
            {"storageClassName": "c"},
            {"storageClassName": "d"},
            ['storageClassName: Invalid value: "d": field is immutable'],
        ),
    ],
)
def test_errors_of_changed_objects(resource: str, old: Object, body: Object, expected: list[str]) -> None:
    assert errors_of(resource, body, old) == expected


def test_an_inline_volume_has_no_claim_not_even_an_empty_one() -> None:
    inline = {"csi": {"driver": "d.example", "volumeHandle": "h"}, "accessModes": ["ReadWriteOnce"], "claimRef": {}}
    body = {"spec": {**ATTACHMENT["spec"], "source": {"inlineVolumeSpec": inline}}}
    assert errors_of("volumeattachments", body) == [
        "spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes"
    ]


def test_a_driver_counts_changes_of_its_spec() -> None:
    strategy = STRATEGIES["csidrivers"]()
    old, obj = made("csidrivers", {"spec": {}}), made("csidrivers", {"spec": {"requiresRepublish": True}})
    strategy.prepare_for_update(Context(), obj, old)
    assert obj["metadata"]["generation"] == 1


def test_status_writes_leave_labels_alone() -> None:
    strategy = STRATEGIES["volumeattachments"].subresources["status"]()
    old = made("volumeattachments", {**ATTACHMENT, "metadata": {"labels": {"a": "b"}}})
    obj = made("volumeattachments", {"metadata": {"labels": {"c": "d"}}, "spec": {}, "status": {"attached": True}})
    strategy.prepare_for_update(Context(), obj, old)
    assert obj == {**old, "status": {"attached": True}}


def test_old_names_of_node_labels_earn_a_warning() -> None:
    terms = [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["linux"]}]}]
    obj = made("storageclasses", {**CLASS, "allowedTopologies": terms})
    assert STRATEGIES["storageclasses"]().warnings_on_create(Context(), obj) == [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    topology = {"matchLabels": {"node-role.kubernetes.io/master": ""}}
    capacity = made("csistoragecapacities", {"storageClassName": "c", "nodeTopology": topology})
    assert STRATEGIES["csistoragecapacities"]().warnings_on_create(Context(), capacity) == [
        'nodeTopology.matchLabels.node-role.kubernetes.io/master: use "node-role.kubernetes.io/control-plane" instead'
    ]


MARK = "storageclass.kubernetes.io/is-default-class"


def storage_class(name: str, born: str, **annotations: str) -> Object:
    return {"metadata": {"name": name, "creationTimestamp": born, "annotations": annotations}, **CLASS}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([storage_class("a", "2026-01-01T00:00:00Z")], ["a"]),
        (
            [storage_class("a", "2026-01-01T00:00:00Z", **{MARK: "true"}), storage_class("b", "2026-01-02T00:00:00Z")],
            ["a (default)", "b"],
        ),
        (
            [
                storage_class("a", "2026-01-01T00:00:00Z", **{MARK: "true"}),
                storage_class("b", "2026-01-02T00:00:00Z", **{MARK.replace("class.", "class.beta.", 1): "true"}),
            ],
            ["a", "b (default)"],
        ),
        (
            [
                storage_class("b", "2026-01-01T00:00:00Z", **{MARK: "true"}),
                storage_class("a", "2026-01-01T00:00:00Z", **{MARK: "true"}),
                storage_class("c", "2026-01-02T00:00:00Z", **{MARK: "false"}),
            ],
            ["b", "a (default)", "c"],
        ),
    ],
)
def test_lists_mark_the_class_that_claims_get(classes: list[Object], expected: list[str]) -> None:
    strategy = STRATEGIES["storageclasses"]()
    assert strategy.list_columns is not None
    columns = strategy.list_columns(classes)
    assert [columns[0].cell(obj) for obj in classes] == expected
    assert [column.name for column in columns] == [column.name for column in strategy.columns]
    assert [strategy.columns[0].cell(obj) for obj in classes] == [obj["metadata"]["name"] for obj in classes]
