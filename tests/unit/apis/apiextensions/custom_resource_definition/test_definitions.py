"""Reading definitions: conditions, deprecation, approval, field paths."""

from __future__ import annotations

import pytest

from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.apiextensions.custom_resource_definition.approval import approval_of, is_protected
from pilothouse.apis.apiextensions.custom_resource_definition.field_paths import FieldPathError, find_field
from pilothouse.apis.apiextensions.schema.nodes import Node


def test_a_condition_keeps_its_time_while_its_status_stays():
    crd = {}
    definitions.set_condition(crd, {"type": "T", "status": "True", "reason": "A", "message": ""}, "1")
    definitions.set_condition(crd, {"type": "T", "status": "True", "reason": "B", "message": ""}, "2")
    assert definitions.condition(crd, "T") == {
        "type": "T",
        "status": "True",
        "lastTransitionTime": "1",
        "reason": "B",
        "message": "",
    }
    definitions.set_condition(crd, {"type": "T", "status": "False", "reason": "B", "message": ""}, "3")
    assert definitions.condition(crd, "T")["lastTransitionTime"] == "3"
    definitions.remove_condition(crd, "T")
    assert definitions.condition(crd, "T") is None


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ({"name": "v1beta1"}, ""),
        ({"name": "v1beta1", "deprecated": True}, "g/v1beta1 K is deprecated; use g/v2 K"),
        ({"name": "v2", "deprecated": True}, "g/v2 K is deprecated"),
        ({"name": "v1beta1", "deprecated": True, "deprecationWarning": "go away"}, "go away"),
    ],
)
def test_deprecation(version, expected):
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": True}, {"name": "v3"}]
    crd = {"spec": {"group": "g", "names": {"kind": "K"}, "versions": versions}}
    assert definitions.deprecation_of(crd, version) == expected


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (None, "MissingAnnotation"),
        ("unapproved, experimental", "UnapprovedAnnotation"),
        ("https://github.com/x/1", "ApprovedAnnotation"),
        ("whatever", "InvalidAnnotation"),
        ("http://[", "InvalidAnnotation"),
    ],
)
def test_approval(annotation, reason):
    annotations = None if annotation is None else {"api-approved.kubernetes.io": annotation}
    assert approval_of(annotations)[0] == reason


def test_protected_groups():
    assert is_protected("a.k8s.io") and is_protected("kubernetes.io")
    assert not is_protected("k8s.io.example.com")


NODE = Node(
    {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"a.b": {"type": "string"}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
)


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        (".spec", "spec", "object"),
        (".spec['a.b']", "spec.a.b", "string"),
        (".map.x", "map[x]", "integer"),
        (".map['y']", "map[y]", "integer"),
    ],
)
def test_field_paths(text, path, kind):
    found, node = find_field(text, NODE)
    assert (str(found), node.type) == (path, kind)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".none", "does not refer to a valid field"),
        (".spec.a.b", "does not refer to a valid field"),
        ("spec", "expected [ or . but got: spec"),
        (".", "unexpected end of JSON path"),
        (".spec[0]", "expected single quoted string but got 0"),
        (".spec['a.b'", "unexpected end of JSON path"),
    ],
)
def test_bad_field_paths(text, why):
    with pytest.raises(FieldPathError) as caught:
        find_field(text, NODE)
    assert str(caught.value) == why
