"""Objects that a fresh server creates for itself: the system namespaces, and the RBAC policy."""

from __future__ import annotations

import logging
from typing import Any, Final

from pilothouse.apis.strategy import Context
from pilothouse.machinery import errors
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

logger = logging.getLogger(__name__)
SYSTEM_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
API_SERVER_USER: Final = "system:apiserver"


def server_context(namespace: str = "") -> Context:
    """The context of the server's own writes."""
    return Context(user=API_SERVER_USER, namespace=namespace, groups=("system:masters",), now=now(), verb="create")


async def create_missing(store: Store, obj: dict[str, Any]) -> None:
    """Create the object unless it is already there."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    await store.cache.wait_ready()
    if store.cache.get(store.key(namespace, metadata["name"])) is not None:
        return
    store.strategy.default(obj)
    try:
        await store.create(server_context(namespace), obj)
    except errors.StatusError as error:
        if error.reason != "AlreadyExists":
            raise


async def create_system_namespaces(store: Store) -> None:
    """The namespaces that must always exist."""
    for name in SYSTEM_NAMESPACES:
        await create_missing(store, {"metadata": {"name": name}, "spec": {}, "status": {}})
