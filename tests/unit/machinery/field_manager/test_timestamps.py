from __future__ import annotations

from typing import Any

from pilothouse.machinery.field_manager import keep_times


def entry(manager: str, operation: str = "Update", **more: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    return {**made, **more}


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
