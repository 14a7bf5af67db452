import asyncio
from typing import Any

import pytest

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.events import EventBroadcaster
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_reference
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors, labels
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.user import User
from pilothouse.net.messages import Response
from pilothouse.net.writing import BodyWriter


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "data": {"k": "v"}}


POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def test_objects_are_written_and_read_as_over_a_socket(clients: LoopbackClients) -> None:
    maps = clients.api_server().of("", "v1", "configmaps")
    made = await maps.create(config_map("a"))
    assert made["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    assert (await maps.get("default", "a"))["data"] == {"k": "v"}
    with pytest.raises(errors.AlreadyExists):
        await maps.create(config_map("a"))
    made["data"]["k"] = "w"
    changed = await maps.update(made)
    with pytest.raises(errors.Conflict):
        await maps.update({**made, "data": {}})
    patched = await maps.patch("default", "a", {"data": {"more": "x"}})
    assert patched["data"] == {"k": "w", "more": "x"}
    patched = await maps.patch("default", "a", [{"op": "remove", "path": "/data/more"}], "json")
    assert patched["data"] == changed["data"]
    applied = await maps.apply({"kind": "ConfigMap", "apiVersion": "v1", **config_map("b")}, "me", force=True)
    assert applied["metadata"]["managedFields"][0] | {"time": "", "fieldsV1": ""} == {
        "manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "", "fieldsV1": "",
    }  # fmt: skip
    assert [item["metadata"]["name"] async for item in maps.items("default")] == ["a", "b", "kube-root-ca.crt"][:2]
    with pytest.raises(errors.Conflict):
        await maps.delete("default", "a", uid="another")
    await maps.delete("default", "a", uid=changed["metadata"]["uid"])
    with pytest.raises(errors.NotFound) as refused:
        await maps.get("default", "a")
    assert refused.value.message == 'configmaps "a" not found'
    await maps.delete_collection("default")
    assert (await maps.list("default"))["items"] == []
    with pytest.raises(errors.NotFound):
        await clients.api_server().of("example.com", "v1", "nothing").list()


async def test_the_user_is_authorized_and_admission_has_its_say(clients: LoopbackClients) -> None:
    nobody = clients.as_user(User("somebody"), "test").of("", "v1", "configmaps")
    with pytest.raises(errors.Forbidden) as refused:
        await nobody.get("default", "a")
    assert 'User "somebody" cannot get resource "configmaps"' in refused.value.message
    with pytest.raises(errors.NotFound, match='namespaces "missing" not found'):
        await (
            clients.api_server()
            .of("", "v1", "configmaps")
            .create({**config_map("a"), "metadata": {"name": "a", "namespace": "missing"}})
        )
    mine = (
        await clients.as_user(User("somebody"), "test")
        .of("authentication.k8s.io", "v1", "selfsubjectreviews")
        .create({"metadata": {}})
    )
    assert mine["status"]["userInfo"] == {"username": "somebody", "groups": ["system:authenticated"]}


async def test_controllers_act_as_their_service_account(clients: LoopbackClients) -> None:
    client = clients.controller("replicaset-controller")
    who = await client.of("authentication.k8s.io", "v1", "selfsubjectreviews").create({"metadata": {}})
    assert who["status"]["userInfo"] == {
        "username": "system:serviceaccount:kube-system:replicaset-controller",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
    }
    await (
        clients.api_server()
        .of("", "v1", "serviceaccounts")
        .create({"metadata": {"name": "default", "namespace": "default"}})
    )
    pod = await client.of("", "v1", "pods").create(POD)
    assert pod["metadata"]["managedFields"][0]["manager"] == "kube-controller-manager"
    assert pod["spec"]["serviceAccountName"] == "default"
    pods = clients.api_server().of("", "v1", "pods")
    await pods.create_subresource(
        "default", "p", "binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    )
    assert (await pods.get("default", "p"))["spec"]["nodeName"] == "n"
    pod = await pods.get("default", "p")
    await pods.update_status({**pod, "status": {**pod["status"], "phase": "Running"}})
    evicted = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p", "namespace": "default"}}
    assert (await pods.create_subresource("default", "p", "eviction", evicted))["status"] == "Success"


async def test_a_watch_shows_what_happens_until_its_block_is_left(clients: LoopbackClients) -> None:
    maps = clients.api_server().of("", "v1", "configmaps")
    seen = []
    async with asyncio.timeout(120), maps.watch("default", label_selector="app=web") as events:
        await maps.create(config_map("other"))
        await maps.create(config_map("web", labels={"app": "web"}))
        await maps.delete("default", "web")
        async for type, obj in events:
            seen.append((type, obj["metadata"]["name"]))
            if type == "DELETED":
                break
    assert seen == [("ADDED", "web"), ("DELETED", "web")]
    with pytest.raises(errors.Forbidden):
        async with clients.as_user(User("somebody"), "test").of("", "v1", "secrets").watch():
            pass


async def test_many_events_of_a_watch_are_all_seen(clients: LoopbackClients) -> None:
    maps = clients.api_server().of("", "v1", "configmaps")
    for number in range(40):
        await maps.create(config_map(f"m{number:02}"))
    names = []
    async with asyncio.timeout(120), maps.watch("default", resource_version="0") as events:
        async for _, obj in events:
            names.append(obj["metadata"]["name"])
            if len(names) == 40:
                break
    assert names == [f"m{number:02}" for number in range(40)]


async def test_objects_are_adopted_and_released(clients: LoopbackClients) -> None:
    maps = clients.api_server().of("", "v1", "configmaps")
    owner = await maps.create(config_map("owner"))
    other = await maps.create(config_map("other"))
    reference = controller_reference(other, "ConfigMap", "v1")
    orphan = await maps.create(config_map("orphan", labels={"app": "web"}))
    foreign = await maps.create(config_map("foreign", labels={"app": "web"}, ownerReferences=[reference]))
    mine = controller_reference(owner, "ConfigMap", "v1")
    lost = await maps.create(config_map("lost", ownerReferences=[mine]))
    asked = []

    async def can_adopt() -> None:
        asked.append("asked")

    claim = ControllerRefClaim(maps, owner, "ConfigMap", "v1", labels.parse("app=web"), can_adopt)
    claimed = await claim.claim_all([orphan, foreign, lost])
    assert [obj["metadata"]["name"] for obj in claimed] == ["orphan"]
    assert asked == ["asked"]
    assert (await maps.get("default", "orphan"))["metadata"]["ownerReferences"] == [mine]
    assert "ownerReferences" not in (await maps.get("default", "lost"))["metadata"]
    assert (await maps.get("default", "foreign"))["metadata"]["ownerReferences"] == [reference]


async def test_events_are_written_counted_and_combined(clients: LoopbackClients, supervisor: Supervisor) -> None:
    client = clients.api_server()
    owner = await client.of("", "v1", "configmaps").create(config_map("owner"))
    broadcaster = EventBroadcaster(client, supervisor)
    recorder = broadcaster.recorder("some-controller")
    for _ in range(3):
        recorder.event(owner, "Normal", "Made", "the same")
    for number in range(12):
        recorder.event(owner, "Warning", "Bad", f"message {number}")
    await broadcaster.flush()
    events = [event async for event in client.of("", "v1", "events").items("default")]
    said = {(event["reason"], event["message"]): event for event in events}
    made = said["Made", "the same"]
    assert made["count"] == 3
    assert made["involvedObject"]["uid"] == owner["metadata"]["uid"]
    assert (made["source"], made["reportingComponent"]) == ({"component": "some-controller"}, "some-controller")
    assert said["Bad", "(combined from similar events): message 11"]["count"] == 3
    assert len(events) == 1 + 9 + 1


async def test_events_about_what_cannot_be_written_are_forgotten(
    clients: LoopbackClients, supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    broadcaster = EventBroadcaster(clients.as_user(User("somebody"), "test"), supervisor)
    broadcaster.recorder("c").event(
        {"metadata": {"name": "a"}}, "Normal", "Made", "text", kind="Node", api_version="v1"
    )
    await broadcaster.flush()
    assert "event is refused: Made" in caplog.text


async def test_an_answer_that_comes_bit_by_bit() -> None:
    async def stream(writer: BodyWriter) -> None:
        for piece in (b'{"kind": ', b'"PodMetricsList", ', b'"items": []}'):
            writer.write(piece)
            await writer.drain()

    async def handle(request: APIRequest) -> Response:
        return Response(200, b"", stream=stream)

    client = LoopbackClients(handle).api_server()
    assert await client.request("GET", "/apis/metrics.k8s.io/v1beta1/pods") == {"kind": "PodMetricsList", "items": []}


async def test_a_large_collection_is_deleted_page_by_page(clients: LoopbackClients) -> None:
    """With what stays because of its finalizers among it; nothing is read but metadata."""
    maps = clients.api_server().of("", "v1", "configmaps")
    for number in range(1_100):
        held = {"finalizers": ["example.com/held"]} if number % 100 == 0 else {}
        await maps.create(config_map(f"m{number:04}", **held))
    await maps.delete_collection("default", field_selector="metadata.name!=kube-root-ca.crt")
    left = [item async for item in maps.items("default", metadata_only=True)]
    assert [item["metadata"]["name"] for item in left if item["metadata"].get("finalizers")] == [
        f"m{number:04}" for number in range(0, 1_100, 100)
    ]
    assert len(left) <= 12
    assert not any("data" in item for item in left)
    assert [item async for item in maps.items("nowhere", metadata_only=True)] == []


async def test_pages_of_a_collection_are_deleted_until_the_last() -> None:
    asked: list[str] = []

    async def handle(request: APIRequest) -> Response:
        asked.append(f"{request.method} {request.path}?{request.line.query}")
        return Response(200, b'{"metadata": {"continue": "more"}}' if len(asked) == 1 else b'{"metadata": {}}')

    await LoopbackClients(handle).api_server().of("", "v1", "pods").delete_collection("default")
    path = "DELETE /api/v1/namespaces/default/pods?limit=500"
    assert asked == [path, f"{path}&continue=more"]
