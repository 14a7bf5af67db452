"""Updates that change the same fields of objects alike: what is remembered is what would be found."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.structured import DEDUCED, Shape
from pilothouse.machinery.structured.field_sets import FieldSet
from pilothouse.machinery.structured.shapes import MapShape

NOW = "2024-01-01T00:00:01Z"
THING = GroupVersionKind("example.com", "v1", "Thing")
SHAPE = Shape(map=MapShape(element=lambda: DEDUCED))
Object = dict[str, Any]


class Counted:
    """A filter that lets all through, and knows how often it was asked: thrice each time that owners are worked out."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, fields: FieldSet) -> FieldSet:
        self.asked += 1
        return fields


def manager(counted: Counted | None = None) -> FieldManager:
    return FieldManager(SHAPE, THING, reset_fields={"example.com/v1": counted or Counted()})


def thing(data: Object) -> Object:
    return {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "x", "uid": "u"}, "data": data}


def updated(fields: FieldManager, live: Object, data: Object, writer: str, now: str = NOW) -> Object:
    return fields.update(live, thing(data), writer, now)


def later(number: int) -> str:
    return f"2024-01-01T00:01:0{number}Z"


def test_the_same_change_to_objects_alike_is_worked_out_twice_at_most() -> None:
    counted = Counted()
    fields = manager(counted)
    results = []
    for number in range(5):
        made = fields.update(None, thing({"a": number, "b": {"c": "1"}}), "creator", NOW)
        results.append(updated(fields, made, {"a": number, "b": {"c": f"value {number}"}}, "writer", later(number)))
    creates, updates = 2, 2
    assert counted.asked == 3 * (creates + updates)
    times = [[entry["time"] for entry in result["metadata"]["managedFields"]] for result in results]
    assert times == [[NOW, later(number)] for number in range(5)]
    for result in results:
        creator, writer = result["metadata"]["managedFields"]
        assert writer["fieldsV1"] == {"f:data": {"f:b": {"f:c": {}}}}
        assert "f:b" in creator["fieldsV1"]["f:data"] and "f:c" not in creator["fieldsV1"]["f:data"]["f:b"]


def test_sets_that_are_long_are_not_remembered() -> None:
    counted = Counted()
    fields = manager(counted)
    names = {f"{'x' * 100}{number}": "" for number in range(100)}
    for number in range(5):
        made = fields.update(None, thing(names), "creator", NOW)
        updated(fields, made, dict.fromkeys(names, str(number + 1)), "writer")
    assert counted.asked == 3 * 10


leaves = st.integers(0, 2) | st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=2)
data = st.dictionaries(st.sampled_from("ab"), leaves, max_size=2)
writes = st.lists(st.tuples(data, st.sampled_from(["one", "two"]), st.booleans()), max_size=6)
histories = st.lists(writes, min_size=1, max_size=3)


@settings(max_examples=200)
@given(histories)
def test_what_is_remembered_is_what_would_be_found(histories: list[Any]) -> None:
    fields = manager()
    for history in [*histories, *histories, *histories]:
        mine = theirs = thing({})
        for content, writer, applied in history:
            fresh = manager()
            if applied:
                patch = {**thing(content), "metadata": {"name": "x"}}
                mine = fields.apply(mine, patch, writer, force=True, now=NOW)
                theirs = fresh.apply(theirs, patch, writer, force=True, now=NOW)
            else:
                mine = updated(fields, mine, content, writer)
                theirs = updated(fresh, theirs, content, writer)
            assert mine == theirs
