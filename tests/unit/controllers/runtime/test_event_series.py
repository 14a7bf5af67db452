from typing import Any

from pilothouse.controllers.runtime.event_series import SeriesRecorder
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

SERVICE = {"metadata": {"name": "web", "namespace": "ns", "uid": "u-1", "resourceVersion": "7"}}


async def told(events: Store) -> list[dict[str, Any]]:
    await events.cache.wait_fresh()
    return [events.decode(entry) for entry in events.cache.entries()]


async def test_what_is_said_once_is_an_event(storage: StorageFactory) -> None:
    events = storage.store("events.k8s.io", "v1", "events")
    await SeriesRecorder(events, "some-controller").warn(SERVICE, "Service", "v1", "Bad", "Checking", "it is bad")
    (event,) = await told(events)
    assert event["involvedObject"] == {
        "kind": "Service", "namespace": "ns", "name": "web", "uid": "u-1", "apiVersion": "v1", "resourceVersion": "7",
    }  # fmt: skip
    assert event["metadata"]["name"].startswith("web.")
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "Bad", "Checking")
    assert event["message"] == "it is bad"
    assert event["reportingComponent"] == "some-controller"
    assert event["reportingInstance"].startswith("some-controller-")
    assert "series" not in event


async def test_what_is_said_again_is_a_series(storage: StorageFactory) -> None:
    events = storage.store("events.k8s.io", "v1", "events")
    recorder = SeriesRecorder(events, "some-controller")
    for note in ("same", "same", "other", "same"):
        await recorder.warn(SERVICE, "Service", "v1", "Bad", "Checking", note)
    counts = {event["message"]: (event.get("series") or {}).get("count") for event in await told(events)}
    assert counts == {"same": 3, "other": None}


async def test_objects_without_a_namespace_are_told_of_in_the_default_one(storage: StorageFactory) -> None:
    events = storage.store("events.k8s.io", "v1", "events")
    address = {"metadata": {"name": "2001:db8::1", "uid": "u-2"}}
    recorder = SeriesRecorder(events, "some-controller")
    await recorder.warn(address, "IPAddress", "networking.k8s.io/v1", "Bad", "Checking", "note")
    (event,) = await told(events)
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["name"] == "2001:db8::1"
