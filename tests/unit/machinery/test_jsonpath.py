"""JSONPath as printer columns use it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.jsonpath import JsonPathError, parse

OBJ = {
    "spec": {"a": 1, "a.b": "dotted", "list": [10, 20, 30], "objects": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
        "deep": {"n": "z"},
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        ("$.spec.a", [1]),
        (".spec.none", []),
        (".spec.a.b", []),
        (".spec['a.b']", ["dotted"]),
        (".spec.a\\.b", ["dotted"]),
        (".spec.list[0]", [10]),
        (".spec.list[-1]", [30]),
        (".spec.list[7]", []),
        (".spec.list[0:2]", [10, 20]),
        (".spec.list[::2]", [10, 30]),
        (".spec.list[0,2]", [10, 30]),
        (".spec.list[*]", [10, 20, 30]),
        (".spec.objects[*].n", ["x", "y"]),
        (".spec['a','list']", [1, [10, 20, 30]]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".spec.objects[?(@.v > 1)].n", ["y"]),
        (".spec.objects[?(@.none)].n", []),
        ("..n", ["x", "y", "z"]),
        (".", [OBJ]),
    ],
)
def test_finding(path, found):
    assert parse(path).find(OBJ) == found


@pytest.mark.parametrize("path", [".a[", ".a['b", ".a[b]", ".a[?(@.b ~ 1)]", ".a b", ".a[?(@.b == c)]"])
def test_what_is_no_path(path):
    with pytest.raises(JsonPathError):
        parse(path)


@given(st.text(alphabet=".[]()@?*'\"ab01:,=<>\\ $", max_size=20))
def test_no_text_is_too_strange(text):
    try:
        path = parse(text)
    except JsonPathError:
        return
    path.find(OBJ)
