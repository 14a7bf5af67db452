"""Between objects and bytes."""

from __future__ import annotations

import uuid
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.registry.store.codec import ObjectCodec, with_revision

UID = str(uuid.UUID(int=7))
BUILT_IN = ObjectCodec("Pod", "v1", lambda obj: {"spec.nodeName": obj.get("spec", {}).get("nodeName", "")})
CUSTOM = ObjectCodec("Thing", "example.com/v1", None, keeps_type=True)
KEY = "/registry/pods/b/a"


def pod(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "b", "uid": UID, "labels": {"x": "y"}}, **more}


def test_metadata_comes_first_and_in_order() -> None:
    metadata = {"labels": {"x": "y"}, "uid": UID, "name": "a", "resourceVersion": "5"}
    data = BUILT_IN.encode({"spec": {}, "metadata": metadata, "kind": "Pod"})
    assert data == b'{"metadata":{"name":"a","uid":"%b","labels":{"x":"y"}},"spec":{}}' % UID.encode()


def test_stored_bytes_carry_the_type_and_cached_ones_do_not() -> None:
    data = BUILT_IN.encode(pod(spec={"nodeName": "n"}))
    stored = BUILT_IN.to_stored(data)
    assert stored.startswith(b'{"kind":"Pod","apiVersion":"v1","metadata":{')
    entry = BUILT_IN.entry(KEY, stored, 17)
    assert (entry.key, entry.revision, entry.namespace, entry.name) == (KEY, 17, "b", "a")
    assert (entry.labels, entry.fields) == ({"x": "y"}, {"spec.nodeName": "n"})
    obj = orjson.loads(entry.data)
    assert "kind" not in obj
    assert list(obj["metadata"])[:4] == ["name", "namespace", "uid", "resourceVersion"]
    assert obj["metadata"]["resourceVersion"] == "17"


def test_bytes_that_another_server_wrote() -> None:
    """The order of the type's fields may be another, and there may be no uid."""
    entry = BUILT_IN.entry(KEY, b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}', 3)
    assert orjson.loads(entry.data) == {"metadata": {"name": "a", "resourceVersion": "3"}}


def test_custom_objects_keep_their_type() -> None:
    obj = {"metadata": {"name": "a", "uid": UID}, "kind": "Thing", "apiVersion": "example.com/v1", "spec": 1}
    data = CUSTOM.encode(obj)
    assert list(orjson.loads(data)) == ["apiVersion", "kind", "metadata", "spec"]
    assert orjson.loads(CUSTOM.entry(KEY, CUSTOM.to_stored(data), 2).data)["kind"] == "Thing"


@pytest.mark.parametrize(
    "data",
    [
        BUILT_IN.encode(pod()),
        BUILT_IN.encode({"metadata": {"name": "a"}}),
        BUILT_IN.encode({"metadata": {"name": "a", "uid": "short"}}),
        BUILT_IN.encode({"metadata": {"uid": UID}}),
        BUILT_IN.encode({"metadata": {"name": "a", "annotations": {"x": f'"uid":"{UID}"'}}}),
    ],
)
def test_revisions_are_put_in_and_replaced(data: bytes) -> None:
    once = with_revision(data, 5)
    twice = with_revision(once, 123456)
    plain = orjson.loads(data)
    for stamped, revision in ((once, "5"), (twice, "123456")):
        obj = orjson.loads(stamped)
        assert obj["metadata"].pop("resourceVersion") == revision
        assert obj == plain


def test_restamping_leaves_the_first_entry_alone() -> None:
    entry = BUILT_IN.entry(KEY, BUILT_IN.to_stored(BUILT_IN.encode(pod())), 5)
    later = BUILT_IN.restamp(entry, 9)
    assert (entry.revision, later.revision) == (5, 9)
    assert orjson.loads(later.data)["metadata"]["resourceVersion"] == "9"
    assert orjson.loads(entry.data)["metadata"]["resourceVersion"] == "5"


TEXTS = st.text(max_size=8) | st.just('"uid":"') | st.just('"resourceVersion":"5"')


@given(st.dictionaries(TEXTS, TEXTS), st.dictionaries(TEXTS, TEXTS), st.integers(1, 2**63))
def test_what_users_write_cannot_confuse_it(labels: dict[str, str], data: dict[str, str], revision: int) -> None:
    obj = {"metadata": {"name": "a", "uid": UID, "annotations": labels}, "data": data}
    entry = BUILT_IN.entry(KEY, BUILT_IN.to_stored(BUILT_IN.encode(obj)), revision)
    wanted = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}  # type: ignore[dict-item]
    assert orjson.loads(entry.data) == wanted
