"""Only documents that can be shown later get in."""

from __future__ import annotations

import contextlib

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.openapi.foreign import UnusableDocument, converted_swagger, swagger_below

KEYS = st.sampled_from(
    ["paths", "definitions", "parameters", "/a", "get", "responses", "200", "schema", "$ref", "in", "name", "items"]
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["x", "#/definitions/x", "body"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(TREES)
@settings(max_examples=80, deadline=None)
def test_whatever_comes_is_kept_or_refused(tree: object) -> None:
    data = orjson.dumps(tree)
    for use in (lambda: swagger_below(data, "/a", "1"), lambda: converted_swagger(data, "1")):
        with contextlib.suppress(UnusableDocument):
            orjson.loads(use().body)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"paths": []}', b"[" * 1000, b'{"a":' * 900 + b"1" + b"}" * 900])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(UnusableDocument):
        swagger_below(data, "/apis/a/v1/", "1")
