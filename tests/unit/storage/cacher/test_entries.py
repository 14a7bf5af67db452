import sys
import time

import orjson
import pytest

from pilothouse.storage.cacher import entries
from pilothouse.storage.cacher.entries import Entry, SharedNames, drop_old_forms, restamp_json


@pytest.mark.parametrize(
    "content",
    [
        {"metadata": {"name": "a", "resourceVersion": "5"}},
        {"involvedObject": {"resourceVersion": "5"}, "metadata": {"resourceVersion": "5", "name": "a"}},
        {"metadata": {"annotations": {"x": '{"resourceVersion":"5"}'}, "resourceVersion": "5"}},
        {"metadata": {"resourceVersion": "5"}, "ref": {"resourceVersion": "55"}},
    ],
)
def test_only_the_objects_own_version_is_replaced(content):
    stamped = orjson.loads(restamp_json(orjson.dumps(content), 5, 17))
    content["metadata"]["resourceVersion"] = "17"
    assert stamped == content
    assert list(stamped) == list(content)


def test_what_is_kept_for_a_while_goes_and_what_is_kept_stays():
    entry = Entry("/a", b"{}", 1)
    entry.keep("version", b"1")
    entry.keep_for_a_while("message", b"2")
    drop_old_forms(time.monotonic())
    assert entry.find_passing("message") == b"2"
    drop_old_forms(time.monotonic() + 100)
    assert entry.find_passing("message") is None
    assert entry.forms == {"version": b"1"}


def test_forms_kept_for_a_while_are_found_by_name_and_go_together():
    many = [Entry(f"/{number}", b"{}", 1) for number in range(100)]
    for entry in many:
        entry.keep_for_a_while("row", b"1")
        entry.keep_for_a_while("message", b"2")
        entry.keep_for_a_while("row", b"3")
    del many[50:]
    assert {(entry.find_passing("row"), entry.find_passing("message")) for entry in many} == {(b"3", b"2")}
    assert many[0].find_passing("other") is None
    drop_old_forms(time.monotonic() + 100)
    assert {entry.passing for entry in many} == {None}


def test_no_more_forms_go_in_one_turn_than_there_is_time_for(monkeypatch):
    monkeypatch.setattr(entries, "_DROPPED_A_TURN", 3)
    drop_old_forms(time.monotonic() + 100)
    many = [Entry(f"/{number}", b"{}", 1) for number in range(7)]
    for entry in many:
        entry.keep_for_a_while("row", b"1")
    for left in (4, 1, 0, 0):
        drop_old_forms(time.monotonic() + 100)
        assert sum(entry.passing is not None for entry in many) == left


def test_mappings_of_the_same_names_keep_these_once():
    values = {f"spec.field{number}": str(number) for number in range(8)}
    share = SharedNames()
    shared = [share(values) for _ in range(100)]
    assert all(each == values for each in shared)
    assert sys.getsizeof(shared[-1]) < sys.getsizeof(dict(values)) * 2 / 3


def test_any_name_will_do():
    values = dict.fromkeys(("__class__", "__dict__", "__weakref__", "__slots__", "", "a b", "spec.a"), "x")
    assert SharedNames()(values) == values


def test_equal_namespaces_are_one():
    first, second = (Entry("/a", b"{}", 1, namespace="".join(["some", "where"])) for _ in range(2))
    assert first.namespace is second.namespace == "somewhere"
