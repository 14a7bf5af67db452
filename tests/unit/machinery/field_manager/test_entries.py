from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.field_manager import InvalidEntries, check_entries
from pilothouse.machinery.field_manager.entries import read_entries, write_entries


def entry(manager: str, operation: str = "Update", **more: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    return {**made, **more}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"operation": ""}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 1"),
        ({"fieldsType": "X"}, 'invalid fieldsType "X" in managed fields entry 1'),
        ({"fieldsV1": {"nocolon": {}}}, "error decoding set: missing colon: nocolon"),
    ],
)
def test_broken_entries(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidEntries) as caught:
        check_entries([entry("ok"), {**entry("bad"), **broken}])
    assert str(caught.value) == message


def test_entries_are_sorted() -> None:
    entries = [
        entry("b"), entry("a", time="2024-01-01T00:00:02Z"), entry("c", "Apply"), entry("a", subresource="status"),
        entry("a", apiVersion="v2"),
    ]  # fmt: skip
    written = write_entries(read_entries(entries))
    assert [(e["manager"], e["operation"], e["apiVersion"], e.get("subresource"), e.get("time")) for e in written] == [
        ("c", "Apply", "v1", None, None),
        ("a", "Update", "v1", "status", None),
        ("a", "Update", "v2", None, None),
        ("b", "Update", "v1", None, None),
        ("a", "Update", "v1", None, "2024-01-01T00:00:02Z"),
    ]


def test_an_applier_has_one_entry() -> None:
    both = [entry("a", "Apply", fieldsV1={"f:x": {}}), entry("a", "Apply", apiVersion="v2", fieldsV1={"f:y": {}})]
    assert write_entries(read_entries(both)) == [both[1]]


def test_untouched_entries_are_passed_on() -> None:
    entries = [entry("a", fieldsV1={"f:x": {}}, time="2024-01-01T00:00:02Z")]
    assert write_entries(read_entries(entries, trusted=True))[0] is entries[0]
