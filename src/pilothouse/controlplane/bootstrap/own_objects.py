"""Writing the objects that belong to the server itself."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.strategy import Context
from pilothouse.machinery import errors
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

API_SERVER_USER: Final = "system:apiserver"


def server_context(namespace: str = "", verb: str = "create") -> Context:
    """The context of the server's own writes."""
    return Context(user=API_SERVER_USER, namespace=namespace, groups=("system:masters",), now=now(), verb=verb)


async def existing(store: Store, namespace: str, name: str) -> dict[str, Any] | None:
    """The stored object, or None."""
    await store.cache.wait_ready()
    entry = store.cache.get(store.key(namespace, name))
    return None if entry is None else store.decode(entry)


async def create(store: Store, obj: dict[str, Any]) -> None:
    """Create the object; one that another server has just created is fine too."""
    store.strategy.default(obj)
    try:
        await store.create(server_context(obj["metadata"].get("namespace", "")), obj)
    except errors.StatusError as error:
        if error.reason != "AlreadyExists":
            raise


async def create_missing(store: Store, obj: dict[str, Any]) -> None:
    """Create the object unless it is already there."""
    metadata = obj["metadata"]
    if await existing(store, metadata.get("namespace", ""), metadata["name"]) is None:
        await create(store, obj)
