"""The testing kit, used as its users do: fixtures of the plug-in that pytest finds by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.testing.client import AsyncClient, Client, Refused
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.users import Users
from pilothouse.testing.webhooks import Webhooks

DEFINITION = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: ignored}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_client(pilothouse_client: Client) -> None:
    client = pilothouse_client
    assert client.create(config_map("a", x="1"))["metadata"]["namespace"] == client.namespace
    assert client.apply(config_map("a", x="2"))["data"] == {"x": "2"}
    assert client.patch("v1/ConfigMap", "a", {"data": {"y": "3"}})["data"] == {"x": "2", "y": "3"}
    assert [each["metadata"]["name"] for each in client.list("v1/ConfigMap")] == ["a"]
    client.delete("v1/ConfigMap", "a")
    client.wait_gone("v1/ConfigMap", "a")
    with pytest.raises(Refused, match="404 NotFound") as refusal:
        client.get("v1/ConfigMap", "a")
    assert refusal.value.reason == "NotFound"


async def test_the_client_of_coroutines(pilothouse_async_client: AsyncClient) -> None:
    await pilothouse_async_client.create(config_map("a", x="1"))
    found = await pilothouse_async_client.wait_for("v1/ConfigMap", "a", lambda obj: obj["data"]["x"] == "1")
    assert found["metadata"]["name"] == "a"


def test_a_failure_to_wait_shows_what_was_seen(pilothouse_client: Client) -> None:
    client = pilothouse_client
    client.create(config_map("a", colour="red"))
    reference = {"kind": "ConfigMap", "name": "a", "namespace": client.namespace}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": reference}
    client.create({**event, "type": "Warning", "reason": "Faded", "message": "too much sun"})
    with pytest.raises(AssertionError) as failure:
        client.wait_for("v1/ConfigMap", "a", lambda obj: obj["data"]["colour"] == "blue", seconds=0)
    assert "waited 0 s for v1/ConfigMap a" in str(failure.value)
    assert "event Warning Faded x1: too much sun" in str(failure.value)
    assert "colour: red" in str(failure.value)
    with pytest.raises(AssertionError, match="there is no such object"):
        client.wait_for("v1/ConfigMap", "b", seconds=0)


def test_users_have_the_rights_they_were_given(pilothouse_users: Users, pilothouse_client: Client) -> None:
    pilothouse_client.create(config_map("a"))
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    here = pilothouse_client.namespace
    alice = pilothouse_users.user("alice", groups=["crew"], rules=rules, namespace=here)
    assert alice.client.get("v1/ConfigMap", "a")["metadata"]["name"] == "a"
    with pytest.raises(Refused, match='User "alice" cannot list'):
        alice.client.list("v1/ConfigMap")
    assert "client-key-data" in alice.kubeconfig.read_text()
    robot = pilothouse_users.service_account("robot", role="view", namespace=here)
    assert len(robot.client.list("v1/ConfigMap")) >= 1
    with pytest.raises(Refused, match="403"):
        robot.client.delete("v1/ConfigMap", "a")
    assert robot.token in robot.kubeconfig.read_text()


def test_definitions_come_from_folders(pilothouse_definitions: Any, pilothouse_client: Client, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "crd.yaml").write_text(DEFINITION)
    assert [each["metadata"]["name"] for each in pilothouse_definitions(tmp_path)] == ["boats.sea.example.com"]
    boat = {"apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {"sails": 2}}
    assert pilothouse_client.create(boat)["spec"] == {"sails": 2}


def test_webhooks_are_functions(pilothouse_webhooks: Webhooks, pilothouse_client: Client) -> None:
    def check(request: dict[str, Any]) -> str | None:
        return "no red here" if request["object"].get("data", {}).get("colour") == "red" else None

    def paint(request: dict[str, Any]) -> dict[str, Any]:
        obj: dict[str, Any] = request["object"]
        return {**obj, "data": {"colour": "green", **(obj.get("data") or {})}}

    checked = pilothouse_webhooks.validating(check, resources=["configmaps"])
    pilothouse_webhooks.mutating(paint, resources=["configmaps"])
    with pytest.raises(Refused, match="no red here"):
        pilothouse_client.create(config_map("red", colour="red"))
    assert pilothouse_client.create(config_map("plain"))["data"] == {"colour": "green"}
    assert checked.requests[-1]["name"] == "plain"


@pytest.mark.pilothouse("--runtime-config=batch/v1=false")
def test_a_server_of_its_own(pilothouse_own_server: InProcessServer) -> None:
    assert pilothouse_own_server.call("GET", "/apis/batch/v1").status == 404


def test_the_server_is_not_rewritten(pytestconfig: pytest.Config) -> None:
    """pytest marks all modules of a distribution that has a plug-in; hundreds of modules are not to be parsed anew."""
    marked = pytestconfig.pluginmanager.rewrite_hook._must_rewrite  # type: ignore[union-attr]
    assert "pilothouse" not in marked
