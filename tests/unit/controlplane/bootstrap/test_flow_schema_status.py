import asyncio

from pilothouse.controllers.own_objects import condition_of, existing, remove
from pilothouse.controlplane.bootstrap.flow_control import ensure_flow_control
from pilothouse.controlplane.bootstrap.flow_schema_status import FlowSchemaStatus
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

GROUP = "flowcontrol.apiserver.k8s.io"


async def until_dangling(store: Store, name: str, status: str) -> None:
    watcher = await store.cache.watch(store.key("", name), initial=True)
    async with asyncio.timeout(10):
        while await watcher.next_batch():
            schema = await existing(store, "", name)
            if schema is not None and (condition_of(schema, "Dangling") or {}).get("status") == status:
                break
    watcher.stop()


async def test_conditions_follow_the_levels(storage: StorageFactory) -> None:
    schemas = storage.store(GROUP, "v1", "flowschemas")
    levels = storage.store(GROUP, "v1", "prioritylevelconfigurations")
    status = FlowSchemaStatus(schemas, levels)
    await status.start()
    await ensure_flow_control(schemas, levels)
    await until_dangling(schemas, "system-nodes", "False")
    await remove(levels, "", "system")
    await until_dangling(schemas, "system-nodes", "True")
    await ensure_flow_control(schemas, levels)
    await until_dangling(schemas, "system-nodes", "False")
    await status.stop()
