"""Custom resources in OpenAPI: what each version of the documents shows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pilothouse.apiextensions.openapi import CustomVersionSource, model_of
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.openapi import version2, version3
from pilothouse.openapi.schemas import V2, V3

GV = GroupVersion("example.com", "v1")
SPEC = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 3},
        "p": {"x-kubernetes-int-or-string": True},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"k": {"type": "string"}},
        },
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"x": {"type": "string"}}},
    },
}


def source(spec=SPEC):
    served = SimpleNamespace(
        crd={"metadata": {"uid": "u", "generation": 1}},
        names={"kind": "Box", "listKind": "BoxList"},
        plural="boxes",
        namespaced=True,
        spec={},
        resource=lambda version: SimpleNamespace(
            is_stored=True, verbs=(), subresources=[SimpleNamespace(name="status"), SimpleNamespace(name="scale")]
        ),
        versions=SimpleNamespace(schemas={"v1": ObjectSchema({"type": "object", "properties": {"spec": spec}})}),
        selectable_fields=lambda version: ["spec.a"],
    )
    return CustomVersionSource(GV, [served])


MODEL = model_of("example.com", "v1", "Box")


def test_version_3_shows_the_schema_itself():
    shown = source().definition(MODEL, V3)
    spec = shown["properties"]["spec"]
    assert spec["properties"]["a"] == {"type": "string", "maxLength": 3}
    assert spec["properties"]["p"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert spec["properties"]["pod"]["required"] == ["kind", "apiVersion"]
    assert {"apiVersion", "kind", "metadata"} <= shown["properties"].keys()
    assert shown["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Box"}]
    assert shown["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.a"}]


def test_lists_tell_where_more_is_said_of_their_metadata():
    shown = source().definition(f"{MODEL}List", V3)
    assert shown["properties"]["metadata"]["description"].startswith("Standard list metadata. More info: https://")


NULLABLE = {"type": "string", "nullable": True, "maxLength": 3}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string", "maxLength": 3, "enum": ["a"]}, {"type": "string", "maxLength": 3, "enum": ["a"]}),
        ({"type": "integer", "format": "int32", "default": 1}, {"type": "integer", "format": "int32"}),
        (
            {"type": "array", "maxItems": 2, "items": NULLABLE},
            {"type": "array", "maxItems": 2, "items": {"maxLength": 3}},
        ),
        ({"type": "array", "nullable": True, "items": {"type": "string"}}, {}),
        ({"type": "object", "oneOf": [{"required": ["a"]}], "not": {"required": ["b"]}}, {"type": "object"}),
        (
            {"type": "object", "nullable": True, "required": ["a"], "properties": {"a": {"type": "string"}}},
            {"required": ["a"]},
        ),
        (
            {"type": "object", "required": ["a", "n"], "properties": {"a": {"type": "string"}, "n": NULLABLE}},
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "n": {"maxLength": 3}}},
        ),
        (
            {"type": "object", "required": ["n"], "properties": {"n": NULLABLE}},
            {"type": "object", "properties": {"n": {"maxLength": 3}}},
        ),
        (
            {"type": "object", "required": ["a"], "additionalProperties": NULLABLE},
            {"type": "object", "additionalProperties": {"maxLength": 3}},
        ),
        (
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "required": ["k"],
                "properties": {"k": {"type": "string"}},
            },
            {"x-kubernetes-preserve-unknown-fields": True, "required": ["k"]},
        ),
        ({"x-kubernetes-int-or-string": True, "pattern": "1"}, {"x-kubernetes-int-or-string": True, "pattern": "1"}),
    ],
)
def test_version_2_shows_no_more_than_old_clients_can_bear(schema, shown):
    assert source(schema).definition(MODEL, V2)["properties"]["spec"] == shown


def test_version_2_names_what_an_embedded_object_needs():
    pod = source().definition(MODEL, V2)["properties"]["spec"]["properties"]["pod"]
    assert pod["required"] == ["kind", "apiVersion"]
    assert pod["properties"].keys() == {"x", "apiVersion", "kind", "metadata"}


def test_whole_documents():
    own = source()
    third = version3.build(own.operations(), lambda model: own.definition(model, V3), custom=own.custom)
    assert third["info"] == {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    assert set(third["components"]) == {"schemas"}
    options = third["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
    groups = {kind["group"] for kind in options["x-kubernetes-group-version-kind"]}
    assert {"", "apps", "storage.k8s.io"} < groups
    assert not groups & {"example.com", "apiextensions.k8s.io", "admission.k8s.io"}
    item = "/apis/example.com/v1/namespaces/{namespace}/boxes/{name}"
    assert set(third["paths"]) == {
        "/apis/example.com/v1/boxes",
        "/apis/example.com/v1/namespaces/{namespace}/boxes",
        item,
        f"{item}/status",
        f"{item}/scale",
    }
    assert third["paths"][item]["get"]["operationId"] == "readExampleComV1NamespacedBox"
    assert MODEL in third["components"]["schemas"]
    second = version2.build(own.operations(), lambda model: own.definition(model, V2))
    assert f"{MODEL}List" in second["definitions"]
    assert set(own.models) == {MODEL, f"{MODEL}List"}
