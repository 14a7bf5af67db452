"""Watches against a whole server: how they begin and end, and what is said in which form."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pilothouse.endpoints.list_options import WatchOptions
from pilothouse.endpoints.verbs.watch import watch_seconds
from pilothouse.testing.definitions import DEFINITIONS, await_condition
from pilothouse.testing.in_process import InProcessServer

END = "k8s.io/initial-events-end"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ships.watching.example"},
    "spec": {
        "group": "watching.example",
        "scope": "Cluster",
        "names": {"plural": "ships", "kind": "Ship"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def ships(pilothouse_server: InProcessServer) -> InProcessServer:
    """A server that serves ships."""
    pilothouse_server.establish(DEFINITION)
    return pilothouse_server


def events(server: InProcessServer, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.call("GET", path).body.splitlines()]


@pytest.mark.parametrize(
    ("path", "marked"),
    [
        ("namespaces/{}/configmaps?watch=1&allowWatchBookmarks=1", True),
        ("namespaces/{}/configmaps?watch=1&allowWatchBookmarks=1&resourceVersion=0", True),
        ("namespaces/{}/configmaps?watch=1", False),
        ("watch/namespaces/{}/configmaps?allowWatchBookmarks=1", False),
        ("watch/namespaces/{}/configmaps?watch=1&allowWatchBookmarks=1", True),
    ],
)
def test_the_end_of_the_present_state_is_marked(
    pilothouse_server: InProcessServer, pilothouse_namespace: str, path: str, marked: bool
) -> None:
    """Whoever begins anew and takes bookmarks is told, without having asked for initial events by name."""
    seen = events(pilothouse_server, "/api/v1/" + path.format(pilothouse_namespace) + "&timeoutSeconds=1")
    assert [event["object"]["metadata"]["annotations"] for event in seen] == [{END: "true"}] * marked


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (1, 1.0),
        (-1, -1.0),
        (None, None),
        (0, None),
        (-(1 << 63), None),
        ((1 << 63) - 1, -1.0),
        (9223372036, 9223372036.0),
        (9223372037, pytest.approx(-9223372036.709552)),
    ],
)
def test_how_long_a_watch_lasts(asked: int | None, seconds: float | None) -> None:
    request: Any = SimpleNamespace(watch_seconds=1800.0)
    lasting = watch_seconds(request, WatchOptions(timeout_seconds=asked))
    assert lasting == seconds if seconds is not None else 1800 <= lasting <= 3600


def test_a_watch_whose_time_was_up_before_it_began_says_nothing(
    pilothouse_server: InProcessServer, pilothouse_namespace: str
) -> None:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/configmaps"
    created = pilothouse_server.call("POST", path, {"metadata": {"name": "a"}})
    assert created.status == 201
    answer = pilothouse_server.call("GET", path + "?watch=1&timeoutSeconds=-1")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(("accept", "status"), [("application/json", 200), ("application/yaml", 406)])
def test_a_version_that_is_gone(ships: InProcessServer, accept: str, status: int) -> None:
    path = "/apis/watching.example/v1/ships?watch=1&resourceVersion=1"
    answer = ships.call("GET", path, None, {"Accept": accept})
    assert answer.status == status
    if status == 200:
        assert answer.json["object"]["code"] == 410


def test_a_definition_that_changes_forgets_what_was_before(ships: InProcessServer) -> None:
    call, served = ships.call, "/apis/watching.example/v1/ships"
    before = call("GET", served).json["metadata"]["resourceVersion"]
    watch = f"{served}?watch=1&timeoutSeconds=1&resourceVersion="
    path, merge = f"{DEFINITIONS}/ships.watching.example", {"Content-Type": "application/merge-patch+json"}
    call("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, merge)
    assert call("GET", watch + before).body == b""
    column = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    patch = [{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [column]}]
    answer = call("PATCH", path, patch, {"Content-Type": "application/json-patch+json"})
    changed = answer.json["metadata"]["resourceVersion"]
    gone = await_condition(lambda: call("GET", watch + before).body, bool)
    assert json.loads(gone)["object"]["code"] == 410
    assert call("GET", watch + changed).body == b""
