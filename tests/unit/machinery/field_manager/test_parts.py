"""The smaller parts: names, entries, times, scale."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.field_manager import InvalidEntries, check_entries, keep_times, manager_of
from pilothouse.machinery.field_manager.entries import read_entries, write_entries
from pilothouse.machinery.field_manager.scale import to_parent, to_scale


def entry(manager: str, operation: str = "Update", **more: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    return {**made, **more}


@pytest.mark.parametrize(
    ("given", "agent", "name"),
    [
        ("me", "kubectl/1.37", "me"),
        ("", "kubectl/1.37 (linux/amd64)", "kubectl"),
        ("", "", ""),
        ("", "no slash", "no slash"),
        ("", "tab\there/1", "tabhere"),
        ("", "x" * 200 + "/1", "x" * 128),
        ("", "ä" * 100 + "/1", "ä" * 64),
        ("", "ä" * 63 + "a😀/1", "ä" * 63 + "a"),
        ("", b"\xe9\xe2\x82/1".decode(errors="surrogateescape"), "\ufffd" * 3),
    ],
)
def test_names(given: str, agent: str, name: str) -> None:
    assert manager_of(given, agent) == name


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


def test_times_alone_are_no_change() -> None:
    def thing(time: str, **more: Any) -> dict[str, Any]:
        return {"metadata": {"name": "x", "managedFields": [entry("a", time=time)]}, **more}

    old, new = thing("1"), thing("2")
    assert keep_times(new, old) == old
    other = thing("2", data={"a": "1"})
    assert keep_times(other, old) is other
    bare: dict[str, Any] = {"metadata": {}}
    assert keep_times(bare, old) is bare
    renamed = {"metadata": {"name": "x", "managedFields": [entry("b", time="2")]}}
    assert keep_times(renamed, old) is renamed


REPLICAS = {"f:spec": {"f:replicas": {}}}
PATHS = {"apps/v1": ("f:spec", "f:replicas"), "apps/v2": None}


def test_scale_sees_owners_of_replicas() -> None:
    parent = [
        entry("a", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}, "f:replicas": {}}}, time="t"),
        entry("b", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}}}),
        entry("c", apiVersion="apps/v0", fieldsV1=REPLICAS),
    ]
    assert to_scale(parent, PATHS) == [
        {**entry("a", apiVersion="autoscaling/v1", fieldsV1=REPLICAS, time="t")},
    ]


def test_replicas_taken_through_scale() -> None:
    parent = [
        entry("a", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}, "f:replicas": {}}}, time="t"),
        entry("b", "Apply", apiVersion="apps/v1", fieldsV1=REPLICAS, time="t"),
        entry("c", apiVersion="apps/v0", fieldsV1=REPLICAS),
        entry("d", apiVersion="apps/v2", fieldsV1=REPLICAS),
    ]
    scaled = [entry("hpa", apiVersion="autoscaling/v1", fieldsV1=REPLICAS, subresource="scale", time="u")]
    written = to_parent(parent, scaled, "apps/v1", PATHS)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"], e.get("time")) for e in written] == [
        ("d", "apps/v2", REPLICAS, None),
        ("hpa", "apps/v1", REPLICAS, None),
        ("a", "apps/v1", {"f:spec": {"f:paused": {}}}, "t"),
    ]


def test_replicas_kept_through_scale() -> None:
    fields = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
    parent = [entry("a", "Apply", apiVersion="apps/v1", fieldsV1=fields, time="t")]
    assert to_parent(parent, to_scale(parent, PATHS), "apps/v1", PATHS) == parent
