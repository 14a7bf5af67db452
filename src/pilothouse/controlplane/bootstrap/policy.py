"""RBAC roles and bindings that every cluster has: created when missing, brought back in line when changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.authz.rbac import bootstrap_policy
from pilothouse.controllers.own_objects import create, existing, server_context
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store


async def reconcile_policy(store_for: Callable[[str], Store], gates: frozenset[str] = frozenset()) -> None:
    """Bring all four kinds in line, all objects at once: writes of one batch share one commit."""
    await asyncio.gather(
        *(
            _reconcile(store, wanted)
            for resource in bootstrap_policy.RESOURCES
            for store in (store_for(resource),)
            for wanted in bootstrap_policy.load(resource, gates)
        )
    )


async def _reconcile(store: Store, wanted: dict[str, Any]) -> None:
    metadata = wanted["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    change = bootstrap_policy.reconcile(await existing(store, namespace, name), wanted)
    if change is None:
        return
    obj: dict[str, Any] = orjson.loads(orjson.dumps(change.object))
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if change.operation == "update":
        await store.update(server_context(namespace, "update"), name, lambda old: _given(obj))
        return
    if change.operation == "recreate":
        await delete(store, server_context(namespace, "delete"), name, DeleteOptions())
    await create(store, obj)


async def _given(obj: dict[str, Any]) -> dict[str, Any]:
    return obj
