import time

import orjson
import pytest

from pilothouse.storage.cacher.entries import Entry, drop_old_forms, restamp_json


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
    assert entry.forms == {"version": b"1", "message": b"2"}
    drop_old_forms(time.monotonic() + 100)
    assert entry.forms == {"version": b"1"}


def test_equal_namespaces_are_one():
    first, second = (Entry("/a", b"{}", 1, namespace="".join(["some", "where"])) for _ in range(2))
    assert first.namespace is second.namespace == "somewhere"
