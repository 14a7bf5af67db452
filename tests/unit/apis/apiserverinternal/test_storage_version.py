import pytest

from pilothouse.apis import types
from pilothouse.apis.apiserverinternal.index import STRATEGIES
from pilothouse.apis.apiserverinternal.storage_version import validate_status
from pilothouse.apis.strategy import Object
from pilothouse.machinery.schema.decoding import decode

SERVER = {"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1"], "servedVersions": ["v1"]}


def made(status: Object) -> Object:
    return decode(types.struct("apiserverinternal.v1alpha1.StorageVersion"), {"spec": {}, "status": status})[0]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, []),
        ({"storageVersions": [SERVER], "commonEncodingVersion": "v1"}, []),
        (
            {"storageVersions": [SERVER]},
            ["status.commonEncodingVersion: Invalid value: null: the common encoding version is v1"],
        ),
        (
            {"storageVersions": [SERVER, {**SERVER, "encodingVersion": "g/v2"}]},
            [
                'status.storageVersions[1].apiServerID: Duplicate value: "a"',
                'status.storageVersions[1].decodableVersions: Invalid value: ["v1"]: decodableVersions must include '
                "encodingVersion g/v2",
            ],
        ),
        (
            {"conditions": [{"type": "A", "status": "True"}]},
            ["status[0].reason: Required value", "status[0].message: Required value"],
        ),
    ],
)
def test_status(status: Object, expected: list[str]) -> None:
    assert [str(error) for error in validate_status(made(status))] == expected


def test_names_are_group_and_resource() -> None:
    validate = STRATEGIES["storageversions"].validate_name
    assert validate("apps.deployments", False) == []
    assert validate("deployments", False) == ["name must be in the form of <group>.<resource>"]


def test_columns_show_three_servers() -> None:
    servers = [{**SERVER, "apiServerID": name} for name in "abcd"]
    cells = [column.cell(made({"storageVersions": servers})) for column in STRATEGIES["storageversions"].columns[1:3]]
    assert cells == ["<unset>", "a=v1,b=v1,c=v1 + 1 more..."]
