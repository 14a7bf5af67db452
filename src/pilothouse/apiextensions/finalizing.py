"""Definitions that were deleted: first all their objects go, then they.

marked ──► Terminating: InstanceDeletionInProgress ──► every object deleted ──► gone: finalizer removed
"""

from __future__ import annotations

from typing import Final

from pilothouse.apiextensions.status_writing import StatusWriter
from pilothouse.apis.apiextensions.custom_resource_definition.definitions import (
    CLEANUP_FINALIZER,
    ESTABLISHED,
    TERMINATING,
    is_true,
    set_condition,
)
from pilothouse.controllers.own_objects import server_context
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import now
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.store.removal import delete_all
from pilothouse.registry.store.store import Store

RETRY_SECONDS: Final = 0.5
_BUILT_IN_PLACES: Final = (
    ("apiregistration.k8s.io", "apiservices"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
)
"""Built-in resources that are stored where custom ones of that name would be: a definition must not take them along."""


def is_finalizing(crd: Object) -> bool:
    """Whether a definition waits for its objects to go."""
    metadata = crd["metadata"]
    return bool(metadata.get("deletionTimestamp")) and CLEANUP_FINALIZER in (metadata.get("finalizers") or ())


async def finalize(crd: Object, instances: Store | None, writer: StatusWriter) -> bool:
    """Go on with it; False while there are objects that something still holds."""
    name = crd["metadata"]["name"]
    progress = _condition("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    await writer.write(name, lambda obj: set_condition(obj, progress, now()))
    if (crd["spec"]["group"], crd["spec"]["names"]["plural"]) in _BUILT_IN_PLACES:
        done = _condition("False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
    elif not is_true(crd, ESTABLISHED):
        done = _condition("False", "NeverEstablished", "resource was never established")
    else:
        if instances is not None and not await _delete_instances(instances):
            return False
        done = _condition("False", "InstanceDeletionCompleted", "removed all instances")

    def release(obj: Object) -> None:
        set_condition(obj, done, now())
        metadata = obj["metadata"]
        metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != CLEANUP_FINALIZER]
        if not metadata["finalizers"]:
            del metadata["finalizers"]

    await writer.write(name, release)
    return True


def _condition(status: str, reason: str, message: str) -> Object:
    return {"type": TERMINATING, "status": status, "reason": reason, "message": message}


async def _delete_instances(store: Store) -> bool:
    await store.cache.wait_ready()
    await store.cache.wait_fresh()
    await delete_all(store, server_context("", "deletecollection"), store.cache.entries(), DeleteOptions())
    return store.cache.count() == 0
