"""The document of version 2."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.apis.resources import table
from pilothouse.openapi import version2
from pilothouse.openapi.operations import MediaTypes, version_operations
from pilothouse.openapi.schemas import V2, definition
from pilothouse.openapi.version2 import shared_name


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    operations = [op for row in table().values() if row.priority for op in version_operations(row, MediaTypes())]
    built = version2.build(operations, lambda model: definition(model, V2))
    loaded: dict[str, Any] = orjson.loads(orjson.dumps(built))
    return loaded


META = "io.k8s.apimachinery.pkg.apis.meta.v1"
PATH = {"uniqueItems": True, "type": "string", "description": "path to the resource", "name": "path", "in": "path"}


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        ({"name": "body", "in": "body", "schema": {"$ref": f"{V2.prefix}{META}.DeleteOptions"}}, "body-2Y1dVQaQ"),
        ({**PATH, "required": True}, "path-z6Ciiujn"),
    ],
)
def test_shared_names_are_the_originals(parameter: dict[str, Any], name: str) -> None:
    assert shared_name(parameter) == name


def test_names_hash_the_escaped_text() -> None:
    plain = {"name": "a", "description": "<&>"}
    assert shared_name(plain) == shared_name(dict(plain))
    assert shared_name(plain) != shared_name({"name": "a", "description": "..."})


def test_operation(document: dict[str, Any]) -> None:
    operation = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"]
    assert operation["consumes"] == ["*/*"]
    assert operation["schemes"] == ["https"]
    assert operation["tags"] == ["apps_v1"]
    schema = {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"}
    assert operation["parameters"][0] == {"name": "body", "in": "body", "required": True, "schema": schema}
    assert [p.get("name") for p in operation["parameters"]] == ["body", "dryRun", None, "fieldValidation"]
    assert operation["responses"]["202"]["schema"] == {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"}
    assert operation["responses"]["401"] == {"description": "Unauthorized"}


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("labelSelector", "list of returned"),
        ("fieldSelector", "list of returned"),
        ("watch", "Watch for changes to the described resources"),
    ],
)
def test_words_that_clients_look_for(document: dict[str, Any], parameter: str, words: str) -> None:
    """As kubectl's suite does, to tell whether what it was given is the document of the API."""
    found = [each for each in document["parameters"].values() if each.get("name") == parameter]
    assert found
    assert all(words in each["description"] for each in found)


def test_enumerated_fields(document: dict[str, Any]) -> None:
    service = document["definitions"]["io.k8s.api.core.v1.ServiceSpec"]["properties"]
    assert service["type"]["enum"] == ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
    assert service["ipFamilies"]["items"] == {"type": "string", "enum": ["", "IPv4", "IPv6"]}


def test_parameters_are_shared_once_and_found(document: dict[str, Any]) -> None:
    used = set()
    for item in document["paths"].values():
        for parameters in (
            item.get("parameters", []),
            *(op.get("parameters", []) for op in item.values() if isinstance(op, dict)),
        ):
            names = [p["$ref"] if "$ref" in p else p["name"] for p in parameters]
            assert len(set(names)) == len(names)
            used |= {name.rpartition("/")[2] for name in names if name.startswith("#/")}
    assert used == document["parameters"].keys()
    assert not {p["name"] for p in document["parameters"].values()} & {"name", "dryRun", "fieldValidation"}


def test_models_have_no_defaults_and_no_wrapped_references(document: dict[str, Any]) -> None:
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    assert pod["properties"]["spec"]["description"]
    assert "default" not in pod["properties"]["spec"]
    text = orjson.dumps(document["definitions"]["io.k8s.api.core.v1.PodSpec"])
    assert b'"allOf"' not in text


def test_values_of_several_types_are_strings(document: dict[str, Any]) -> None:
    schema = document["definitions"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert (schema["type"], schema["format"]) == ("string", "int-or-string")


def test_delete_options_belong_to_every_group(document: dict[str, Any]) -> None:
    kinds = document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][
        "x-kubernetes-group-version-kind"
    ]
    versions = [(kind["group"], kind["version"]) for kind in kinds]
    assert versions == sorted(versions)
    assert {("", "v1"), ("extensions", "v1beta1"), ("admission.k8s.io", "v1")} <= set(versions)
    assert not {group for group, _ in versions} & {"meta.k8s.io", "audit.k8s.io", "apidiscovery.k8s.io"}
