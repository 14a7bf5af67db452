import asyncio
from collections.abc import Sequence

from pilothouse.controllers.own_objects import condition_of, existing, remove
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controlplane.bootstrap.flow_control import ensure_flow_control
from pilothouse.controlplane.bootstrap.flow_control_consumer import FlowControlConsumer
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

GROUP = "flowcontrol.apiserver.k8s.io"


async def until_dangling(store: Store, name: str, status: str) -> None:
    watcher = await store.cache.watch(store.key("", name), initial=True)
    async with asyncio.timeout(120):
        while await watcher.next_batch():
            schema = await existing(store, "", name)
            if schema is not None and (condition_of(schema, "Dangling") or {}).get("status") == status:
                break
    watcher.stop()


async def test_conditions_follow_the_levels(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    schemas = storage.store(GROUP, "v1", "flowschemas")
    levels = storage.store(GROUP, "v1", "prioritylevelconfigurations")
    in_use: set[str] = set()

    def configure(level_objects: Sequence[Object], schema_objects: Sequence[Object]) -> None:
        in_use.clear()
        in_use.update(each["metadata"]["name"] for each in level_objects)

    consumer = FlowControlConsumer(schemas, levels, informers, configure)
    await consumer.start(supervisor)
    await ensure_flow_control(schemas, levels)
    await until_dangling(schemas, "system-nodes", "False")
    await remove(levels, "", "system")
    await until_dangling(schemas, "system-nodes", "True")
    assert "system" not in in_use
    await ensure_flow_control(schemas, levels)
    await until_dangling(schemas, "system-nodes", "False")
    assert in_use >= {"system", "exempt", "catch-all"}
