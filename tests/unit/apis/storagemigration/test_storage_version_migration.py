import pytest

from pilothouse.apis import types
from pilothouse.apis.storagemigration.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

strategy = STRATEGIES["storageversionmigrations"]()
status_strategy = strategy.subresources["status"]()
TIME = "2030-01-01T00:00:00Z"


def made(resource: Object, status: Object | None = None) -> Object:
    body = {"spec": {"resource": resource}, "status": status or {}}
    return decode(types.struct("storagemigration.v1.StorageVersionMigration"), body)[0]


def condition(kind: str, value: str = "True") -> Object:
    return {"type": kind, "status": value, "reason": "R", "message": "", "lastTransitionTime": TIME}


def test_a_resource_is_required() -> None:
    assert strategy.validate(Context(), made({"resource": "pods", "group": "apps"})) == []
    assert [str(error) for error in strategy.validate(Context(), made({}))] == [
        "spec.resource.resource: Required value: resource is required to be set"
    ]


def test_the_spec_never_changes() -> None:
    [found] = strategy.validate_update(Context(), made({"resource": "a"}), made({"resource": "b"}))
    assert str(found).endswith(": field is immutable")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"resourceVersion": "5"}, []),
        ({}, {"resourceVersion": "05"}, ["resource version is not well formed: 05"]),
        ({"resourceVersion": "5"}, {"resourceVersion": "6"}, ["field is immutable"]),
        (
            {},
            {"conditions": [condition("Succeeded"), condition("Failed")]},
            ["Both success and failed conditions cannot be true at the same time"],
        ),
        (
            {"conditions": [condition("Succeeded")]},
            {"conditions": [condition("Succeeded", "False")]},
            ["Success condition cannot be set to false once it is true"],
        ),
    ],
)
def test_progress(before: Object, after: Object, expected: list[str]) -> None:
    target = {"resource": "pods"}
    found = status_strategy.validate_update(Context(), made(target, after), made(target, before))
    assert [error.detail for error in found] == expected


def test_columns() -> None:
    obj = made({"resource": "deployments", "group": "apps"}, {"conditions": [condition("Running")]})
    assert [column.cell(obj) for column in strategy.columns[1:]] == ["deployments.apps", "Running"]
