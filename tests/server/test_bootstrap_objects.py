"""A fresh server ends with the objects that a fresh kube-apiserver 1.37 has, as recorded in ``bootstrap_objects.json``.

Equal but for uids, times, managed fields, certificates, and what the host's name and the port decide.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilothouse.controllers.cluster_roles import aggregate
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.options import complete, parse, provision, validate
from pilothouse.process.process import Process
from pilothouse.registry.storage import find_resource
from pilothouse.registry.store.store import Store
from pilothouse.testing.ports import free_port

RECORDED: dict[str, list[Object]] = json.loads(Path(__file__).with_name("bootstrap_objects.json").read_text())
RECORDED_PORT = 16443
OF_ONE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
PATIENCE_SECONDS = 120.0


@asynccontextmanager
async def running(folder: Path, port: int, *flags: str) -> AsyncIterator[Process]:
    words = [
        f"--data-dir={folder}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=192.0.2.2",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--requestheader-allowed-names=aggregator",
        *flags,
    ]
    options = complete(parse(words))
    assert validate(options) == []
    await asyncio.to_thread(provision, options)
    process = Process(options)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def store_of(process: Process, resource: str) -> Store:
    gv = parse_group_version(RECORDED[resource][0]["apiVersion"])
    return process.cluster.storage.store(gv.group, gv.version, resource)


async def until(store: Store, right: Callable[[Object], bool]) -> None:
    """Wait until all objects of the store, at least one, are as they should be."""
    watcher = await store.cache.watch(initial=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (objects := served(store)) or not all(map(right, objects)):
            assert await watcher.next_batch()
    watcher.stop()


def served(store: Store) -> list[Object]:
    resource = find_resource(store.resource.group_version, store.resource.name)
    head = {"apiVersion": str(resource.group_version), "kind": resource.kind}
    return [{**head, **store.decode(entry)} for entry in store.cache.entries()]


async def until_there(store: Store, name: str) -> None:
    """Wait until the store has an object of that name."""
    watcher = await store.cache.watch(initial=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while all(entry.name != name for entry in store.cache.entries()):
            assert await watcher.next_batch()
    watcher.stop()


async def settle(process: Process) -> None:
    """Wait for what comes after the server is ready."""
    await until_there(store_of(process, "configmaps"), "extension-apiserver-authentication")
    await until(store_of(process, "endpointslices"), lambda obj: bool(obj["endpoints"]))
    await until(store_of(process, "flowschemas"), lambda obj: bool(obj.get("status", {}).get("conditions")))
    roles = store_of(process, "clusterroles")
    await until(roles, lambda obj: not obj.get("aggregationRule") or obj["rules"] == aggregate(obj, served(roles)))


def comparable(resource: str, obj: Object, port: int) -> Object:
    result: Object = json.loads(json.dumps(obj).replace(str(port), str(RECORDED_PORT)))
    metadata = {key: value for key, value in result["metadata"].items() if key not in OF_ONE_SERVER}
    result["metadata"] = metadata
    for condition in result.get("status", {}).get("conditions", ()):
        condition.pop("lastTransitionTime", None)
    if resource == "configmaps":
        result["data"] = {k: "" if "-ca-file" in k or k == "since" else v for k, v in result["data"].items()}
    if result.get("aggregationRule"):
        result["rules"] = None  # recorded without a controller manager; here the server aggregates
    if resource == "leases":
        metadata["name"] = metadata["labels"]["kubernetes.io/hostname"] = "of this host"
        result["spec"] = {**result["spec"], "holderIdentity": "", "renewTime": ""}
    return result


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Object]]:
    """All recorded resources as a fresh server has them."""
    folder, port = tmp_path_factory.mktemp("fresh"), free_port()

    async def gather() -> dict[str, list[Object]]:
        async with running(folder, port) as process:
            await settle(process)
            return {
                resource: [comparable(resource, obj, port) for obj in served(store_of(process, resource))]
                for resource in RECORDED
            }

    return asyncio.run(gather())


@pytest.fixture(scope="module")
def fresh_roles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """The cluster roles of a fresh server by name, with their rules."""

    async def gather() -> dict[str, Object]:
        async with running(tmp_path_factory.mktemp("roles"), free_port()) as process:
            await settle(process)
            return {obj["metadata"]["name"]: obj for obj in served(store_of(process, "clusterroles"))}

    return asyncio.run(gather())


@pytest.mark.parametrize("resource", RECORDED)
def test_a_fresh_server_has_the_recorded_objects(resource: str, fresh: dict[str, list[Object]]) -> None:
    expected = by_name([comparable(resource, obj, RECORDED_PORT) for obj in RECORDED[resource]])
    found = by_name(fresh[resource])
    assert sorted(found) == sorted(expected)
    for name, obj in expected.items():
        assert found[name] == obj


def test_roles_are_aggregated_from_view_to_admin(fresh_roles: dict[str, Object]) -> None:
    view, edit, admin = (fresh_roles[name]["rules"] for name in ("view", "edit", "admin"))
    assert view and all(rule in edit for rule in view)
    assert len(view) < len(edit) < len(admin)
    assert all(rule in admin for rule in edit)


async def test_a_second_start_writes_no_more_than_leases_and_endpoints(tmp_path: Path) -> None:
    port = free_port()
    async with running(tmp_path, port) as process:
        await settle(process)
    async with running(tmp_path, port) as process:
        await settle(process)
        events = (await process.storage.backend.history("/registry/", 1, limit=100_000)).events
    stopped = max(event.revision for event in events if event.value is None)
    folders = {"/".join(event.key.split("/")[2:-1]) for event in events if event.revision > stopped}
    assert folders <= {
        "leases/kube-system",
        "masterleases",
        "peerserverleases",
        "services/endpoints/default",
        "endpointslices/default",
    }


async def test_an_address_leaves_the_endpoints_with_its_server(tmp_path: Path) -> None:
    async with running(tmp_path, free_port()) as process:
        await settle(process)
        await process.cluster.prepare_stop()
        (endpoints,) = served(store_of(process, "endpoints"))
        (piece,) = served(store_of(process, "endpointslices"))
        assert "subsets" not in endpoints
        assert not piece["endpoints"]
        assert served(store_of(process, "leases")) == []
