"""Documents of version 3, against what kube-apiserver publishes for the same resources."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.apis.resources import table
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.openapi import version3
from pilothouse.openapi.operations import MediaTypes, root_of
from pilothouse.openapi.plain_paths import plain_operations
from pilothouse.openapi.schemas import V3
from pilothouse.openapi.sources import BuiltInVersion, PlainPaths, Source

# Made from documents that were equal to kube-apiserver's with every version and feature switched on, but for
# descriptions and enumerations, which the documents of a release leave out.
DIGESTS = dict(line.split() for line in (Path(__file__).parent / "document_digests.txt").read_text().splitlines())


def sources(media: MediaTypes) -> dict[str, Source]:
    found: dict[str, Source] = {root_of(gv)[1:]: BuiltInVersion(row, media) for gv, row in table().items()}
    groups = sorted({gv.group for gv in table() if gv.group})
    return found | {name: PlainPaths(ops) for name, ops in plain_operations(groups, media, logs=True).items()}


def build(source: Source) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(
        orjson.dumps(version3.build(source.operations(), lambda model: source.definition(model, V3)))
    )
    return document


def bare(node: Any, of_properties: bool = False) -> Any:
    """A document without descriptions and enumerations."""
    if isinstance(node, dict):
        return {
            key: bare(value, key == "properties" and not of_properties)
            for key, value in node.items()
            if of_properties or not (isinstance(value, str) if key == "description" else key == "enum")
        }
    return [bare(each) for each in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def core() -> dict[str, Any]:
    return build(sources(MediaTypes())["api/v1"])


def test_every_document_is_the_originals() -> None:
    found = {}
    for name, source in sources(MediaTypes(cbor=True)).items():
        text = orjson.dumps(bare(build(source)), option=orjson.OPT_SORT_KEYS)
        found[name] = hashlib.sha256(text).hexdigest()[:16]
    assert found == DIGESTS


def test_paths_of_pods(core: dict[str, Any]) -> None:
    item = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert sorted(item) == ["delete", "get", "parameters", "patch", "put"]
    assert [(p["name"], p["in"]) for p in item["parameters"]] == [
        ("name", "path"), ("namespace", "path"), ("pretty", "query"),
    ]  # fmt: skip
    assert item["get"]["operationId"] == "readCoreV1NamespacedPod"
    assert item["get"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert item["patch"]["requestBody"]["content"].keys() == {
        "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }  # fmt: skip
    assert "application/cbor" not in item["get"]["responses"]["200"]["content"]


@pytest.mark.parametrize(
    ("model", "field", "wanted"),
    [
        ("PodSpec", "restartPolicy", {"type": "string", "enum": ["Always", "Never", "OnFailure"]}),
        ("ContainerPort", "protocol", {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]}),
        (
            "ServiceSpec", "ipFamilies",
            {"type": "array", "items": {"type": "string", "enum": ["", "IPv4", "IPv6"]},
             "x-kubernetes-list-type": "atomic"},
        ),
        (
            "PersistentVolumeClaimStatus", "allocatedResourceStatuses",
            {"type": "object", "x-kubernetes-map-type": "granular", "additionalProperties": {
                "type": "string",
                "enum": [
                    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
                    "NodeResizeInfeasible", "NodeResizePending",
                ]}},
        ),
    ],
)  # fmt: skip
def test_enumerated_fields(core: dict[str, Any], model: str, field: str, wanted: dict[str, Any]) -> None:
    found = core["components"]["schemas"][f"io.k8s.api.core.v1.{model}"]["properties"][field]
    found.pop("description", None)
    assert found == wanted


def test_references_have_targets(core: dict[str, Any]) -> None:
    def references(node: Any) -> set[str]:
        if isinstance(node, list):
            return set().union(*map(references, node))
        if not isinstance(node, dict):
            return set()
        own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))

    assert references(core) == core["components"]["schemas"].keys()


def test_types_of_every_group_name_their_own_version_only() -> None:
    document = build(sources(MediaTypes())["apis/apps/v1"])
    options = document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
    kinds = [(kind["group"], kind["version"]) for kind in options["x-kubernetes-group-version-kind"]]
    assert kinds == [("", "v1"), ("apps", "v1")]


def test_only_the_given_versions_are_named() -> None:
    from pilothouse.openapi.schemas import definition

    schema = definition("io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent", V3, {GroupVersion("", "v1")})
    assert schema is not None
    assert len(schema["x-kubernetes-group-version-kind"]) == 1
