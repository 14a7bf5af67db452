"""Reading and writing the objects that the server itself takes care of.

Writes go through the store with the server's own identity: defaults, strategy and validation apply, admission does not.
All of them put up with others who do the same: what exists already, was changed or has gone meanwhile is no failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from pilothouse.apis import types
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.endpoints.installer import make_field_manager
from pilothouse.machinery import errors
from pilothouse.machinery.field_manager import FieldManager, keep_times
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.times import now
from pilothouse.machinery.workers import weighed
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store

API_SERVER_USER: Final = "system:apiserver"
OWN_MANAGER: Final = "kube-apiserver"
_ATTEMPTS: Final = 5

Change = Callable[[Object], Object | None]
"""Gets a copy of the stored object, which it may change, and returns what to store, or None to leave it."""
_MANAGERS: Final[dict[tuple[Resource, str, type[Strategy]], FieldManager]] = {}


def server_context(namespace: str = "", verb: str = "create", subresource: str = "") -> Context:
    """The context of the server's own writes."""
    return Context(
        user=API_SERVER_USER,
        namespace=namespace,
        groups=("system:masters",),
        now=now(),
        verb=verb,
        subresource=subresource,
    )


async def existing(store: Store, namespace: str, name: str) -> Object | None:
    """The stored object, or None."""
    await store.cache.wait_ready()
    entry = store.cache.get(store.key(namespace, name))
    return None if entry is None else await store.read(entry)


async def create(store: Store, obj: Object, manager: str = OWN_MANAGER) -> bool:
    """Create the object; False when another server has just done so. ``manager`` owns its fields."""
    store.strategy.default(obj)
    ctx = server_context(obj["metadata"].get("namespace", ""))
    obj = _fields(store.resource, "", type(store.strategy)).update(None, obj, manager, ctx.now)
    try:
        await store.create(ctx, obj)
    except errors.StatusError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True


async def create_missing(store: Store, obj: Object, manager: str = OWN_MANAGER) -> bool:
    """Create the object unless it is already there; whether that was done."""
    metadata = obj["metadata"]
    if await existing(store, metadata.get("namespace", ""), metadata["name"]) is not None:
        return False
    return await create(store, obj, manager)


async def update(store: Store, namespace: str, name: str, change: Change, manager: str = OWN_MANAGER) -> bool:
    """Change an object; whether there was one to change."""
    return await _update(store, server_context(namespace, "update"), name, change, manager, "Update")


async def update_status(
    store: Store,
    namespace: str,
    name: str,
    change: Change,
    manager: str = OWN_MANAGER,
    operation: Literal["Update", "Apply"] = "Update",
) -> bool:
    """Change the status of an object; whether there was one. ``operation`` is how the manager came to own it."""
    return await _update(store, server_context(namespace, "update", "status"), name, change, manager, operation)


async def _update(store: Store, ctx: Context, name: str, change: Change, manager: str, operation: str) -> bool:
    strategy = store.strategy.subresource(ctx.subresource) if ctx.subresource else None
    fields = _fields(store.resource, ctx.subresource, type(strategy or store.strategy))

    async def changed(old: Object | None) -> Object:
        wanted = change(await weighed(ctx.weight, copy_of, old))
        if wanted is None or old is None:
            return dict(old or {})
        store.strategy.default(wanted)
        if operation == "Apply":
            return _applied(store, fields, old, wanted, manager, ctx.now)
        return keep_times(await weighed(ctx.weight, fields.update, old, wanted, manager, ctx.now), old)

    for attempt in range(_ATTEMPTS):
        try:
            await store.update(ctx, name, changed, strategy=strategy, create=False)
        except errors.StatusError as error:
            if error.code == 404:
                return False
            if error.code != 409 or attempt == _ATTEMPTS - 1:
                raise
        else:
            break
    return True


def _fields(resource: Resource, subresource: str, strategy: type[Strategy]) -> FieldManager:
    """What tracks ownership at an endpoint of a store, made once."""
    key = (resource, subresource, strategy)
    manager = _MANAGERS.get(key)
    if manager is None:
        manager = _MANAGERS[key] = make_field_manager(resource, subresource, strategy())
    return manager


def _applied(store: Store, fields: FieldManager, old: Object, wanted: Object, manager: str, at: str) -> Object:
    """The stored object with the wanted status laid over it, as an apply of that status would do."""
    named = {"kind": store.resource.kind, "apiVersion": str(store.resource.group_version)}
    status = dict(wanted.get("status") or {})
    if status.get("conditions"):
        status["conditions"] = [{k: v for k, v in each.items() if v != ""} for each in status["conditions"]]
    patch = {**named, "metadata": {"name": old["metadata"]["name"]}, "status": status}
    merged = fields.apply({**named, **old}, patch, manager, force=True, now=at)
    obj, _ = decode(types.struct(store.resource.type_name), merged)
    return keep_times({key: value for key, value in obj.items() if key not in named}, old)


async def remove(store: Store, namespace: str, name: str, uid: str | None = None) -> bool:
    """Delete an object; whether it was there. With a uid, another object of the same name is left alone."""
    try:
        await delete(store, server_context(namespace, "delete"), name, DeleteOptions(precondition_uid=uid))
    except errors.StatusError as error:
        if error.code not in (404, 409):
            raise
        return False
    return True


def condition_of(obj: Object, type: str) -> dict[str, Any] | None:
    """A condition of the object's status by its type."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == type), None)


def set_condition(obj: Object, condition: dict[str, Any]) -> None:
    """Put a condition into the object's status, in the place of the one of its type."""
    status = obj.setdefault("status", {})
    others = [known for known in status.get("conditions") or () if known.get("type") != condition["type"]]
    status["conditions"] = [*others, condition]
