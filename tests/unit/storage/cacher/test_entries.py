import orjson
import pytest

from pilothouse.storage.cacher.entries import restamp_json


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
