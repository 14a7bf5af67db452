"""How custom resources and their discovery look in the forms clients ask for."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

AGGREGATED = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NAMES = {"plural": "ships", "kind": "Ship"}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ships.forms.example"},
    "spec": {
        "group": "forms.example",
        "scope": "Cluster",
        "names": NAMES,
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": SCHEMA, "subresources": {"status": {}}},
        ],
    },
}
SHIPS = "/apis/forms.example/v1/ships"


@pytest.fixture(scope="module")
def server(pilothouse_server: InProcessServer) -> InProcessServer:
    pilothouse_server.establish(DEFINITION)
    ship = {"apiVersion": "forms.example/v1", "kind": "Ship", "metadata": {"name": "a"}}
    assert pilothouse_server.call("POST", SHIPS, ship).status == 201
    return pilothouse_server


@pytest.mark.parametrize(
    ("path", "form", "status", "message"),
    [
        (
            SHIPS,
            "PartialObjectMetadata",
            406,
            "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
        ),
        (SHIPS + "/a", "PartialObjectMetadataList", 500, "content is not a list"),
        (
            "/api/v1/namespaces/default",
            "PartialObjectMetadataList",
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Namespace)",
        ),
    ],
)
def test_forms_of_the_wrong_number(server: InProcessServer, path: str, form: str, status: int, message: str) -> None:
    answer = server.call("GET", path, None, {"Accept": f"application/json;as={form};g=meta.k8s.io;v=v1"})
    assert (answer.status, answer.json["message"]) == (status, message)


def test_aggregated_discovery_names_the_whole_kind(server: InProcessServer) -> None:
    groups = server.call("GET", "/apis", None, {"Accept": "application/json" + AGGREGATED}).json["items"]
    found: dict[str, Any] = {group["metadata"]["name"]: group["versions"][0]["resources"][0] for group in groups}
    whole = {"group": "forms.example", "version": "v1", "kind": "Ship"}
    ships = found["forms.example"]
    assert (ships["responseKind"], ships["subresources"][0]["responseKind"]) == (whole, whole)
    assert found["apiextensions.k8s.io"]["responseKind"] == {
        "group": "",
        "version": "",
        "kind": "CustomResourceDefinition",
    }


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/yaml" + AGGREGATED, "application/yaml" + AGGREGATED),
        (f"application/json{AGGREGATED};q=0.5,application/yaml{AGGREGATED}", "application/yaml" + AGGREGATED),
        ("*/*" + AGGREGATED, "application/json" + AGGREGATED),
        (f"application/json,application/json{AGGREGATED};q=0.1", "application/json" + AGGREGATED),
        (f"application/json{AGGREGATED};sv=v1,application/json", "application/json"),
        (f"application/json{AGGREGATED.replace('v2', 'v2beta1')},application/json", "application/json"),
    ],
)
def test_forms_of_aggregated_discovery(server: InProcessServer, accept: str, content_type: str) -> None:
    answer = server.call("GET", "/apis", None, {"Accept": accept})
    assert (answer.status, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/apis/forms.example/v1", "application/*", 200),
        ("HEAD", "/apis/forms.example/v1", "*/*", 200),
        ("GET", "/apis/apps/v1", "application/*", 406),
        ("HEAD", "/apis/apps/v1", "*/*", 405),
        ("GET", "/version", "", 200),
    ],
)
def test_who_hands_out_discovery(server: InProcessServer, method: str, path: str, accept: str, status: int) -> None:
    assert server.call(method, path, None, {"Accept": accept}).status == status


@pytest.mark.parametrize(("accept", "indented"), [("application/*", False), ("*", False), ("text/html", True)])
def test_failures_for_clients_that_name_no_form(server: InProcessServer, accept: str, indented: bool) -> None:
    answer = server.call("GET", "/api/v1/namespaces/none", None, {"Accept": accept})
    assert answer.body.startswith(b'{\n  "kind"') is indented


def test_control_characters_have_no_yaml(server: InProcessServer) -> None:
    ship = {"apiVersion": "forms.example/v1", "kind": "Ship", "metadata": {"name": "b"}, "name": "\x7f"}
    assert server.call("POST", SHIPS, ship).status == 201
    answer = server.call("GET", SHIPS + "/b", None, {"Accept": "application/yaml"})
    assert (answer.status, answer.headers["content-type"]) == (500, "application/yaml")
    assert b"message: 'yaml: control characters are not allowed'" in answer.body
    server.call("DELETE", SHIPS + "/b")


@pytest.mark.parametrize("collection", [SHIPS, "/api/v1/namespaces/default/configmaps", "/api/v1/nodes"])
@pytest.mark.parametrize(
    ("name", "why"), [("%25", "may not contain '%'"), ("%2e", "may not be '.'"), ("..", "may not be '..'")]
)
def test_names_that_nothing_can_have(server: InProcessServer, collection: str, name: str, why: str) -> None:
    for method in ("GET", "DELETE"):
        answer = server.call(method, f"{collection}/{name}")
        assert (answer.status, answer.json["message"].partition(": ")[0]) == (400, "Name parameter invalid")
        assert why in answer.json["message"]


def test_forms_come_before_names_that_nothing_can_have(server: InProcessServer) -> None:
    path = "/api/v1/namespaces/default/configmaps/%25"
    for method in ("GET", "PUT", "DELETE"):
        assert server.call(method, path, None, {"Accept": "text/plain"}).status == 406
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "%"}}
    assert "cannot be handled as a ConfigMap" in server.call("PUT", path, body).json["message"]


def test_a_name_to_watch_may_be_any(server: InProcessServer) -> None:
    answer = server.call("GET", "/api/v1/watch/namespaces/default/configmaps/%25?timeoutSeconds=1")
    assert (answer.status, answer.body) == (200, b"")


def test_long_lists_of_custom_resources_are_compressed(server: InProcessServer) -> None:
    large = {"apiVersion": "forms.example/v1", "kind": "Ship", "metadata": {"name": "large"}, "x": "x" * 150_000}
    assert server.call("POST", SHIPS, large).status == 201
    plain = server.call("GET", SHIPS)
    zipped = server.call("GET", SHIPS, None, {"Accept-Encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == plain.body
    server.call("DELETE", SHIPS + "/large")
