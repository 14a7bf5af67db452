"""Collects what has lost its owners.

    an owner is absent            a dependent with no other owner is deleted; one with others loses the reference
    an owner is deleted in the    its dependents are deleted, those that block it before it goes; then its finalizer
      foreground                  is taken off
    an owner is deleted with      its dependents lose the reference; then its finalizer is taken off
      "orphan"

The graph may be behind the truth, so whoever is to be deleted is read anew first, and deletion names uid and version:
an object that was adopted meanwhile stays. An owner is absent only if the API says so. Objects with many owners that
nobody knows are judged one after the other, so that those who have few do not wait for them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from pilothouse.controllers.garbage_collector.absent_owners import AbsentOwners
from pilothouse.controllers.garbage_collector.graph import FOREGROUND, ORPHAN, Graph, Identity, Node, Owner
from pilothouse.controllers.garbage_collector.resources import CollectableResources
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import Propagation, ResourceClient
from pilothouse.controllers.runtime.controller import Controller, NotYet, Periodic
from pilothouse.controllers.runtime.discovery import ServedResource
from pilothouse.controllers.runtime.events import EventRecorder
from pilothouse.controllers.runtime.handlers import Registration
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

logger = logging.getLogger(__name__)
_ACCOUNT: Final = "generic-garbage-collector"
_REFRESH_SECONDS: Final = 30.0
_SOON: Final = 0.2
_FEW: Final = 20
"""So many unknown owners are asked for at once."""


class GarbageCollector:
    """See the module's docstring. Keys are uids."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._client = context.client(_ACCOUNT)
        self._events: EventRecorder = context.recorder("garbage-collector-controller", _ACCOUNT)
        self._graph = Graph()
        self._absent = AbsentOwners(context.clock)
        self._resources = CollectableResources(self._client, self._resource_added, self._resource_gone)
        self._deleting = self._controller("garbage collector", self._attempt_to_delete, 20)
        self._deleting_owned_by_many = self._controller("garbage collector, many owners", self._attempt_thoroughly, 2)
        self._orphaning = self._controller("garbage collector, orphans", self._attempt_to_orphan, 5)
        self._following: dict[GroupVersionResource, Registration] = {}
        self._refreshing = Periodic(
            "garbage collector, kinds", self._resources.refresh, _REFRESH_SECONDS, clock=context.clock
        )
        self._definitions = context.informers.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")

    def start(self, supervisor: Supervisor) -> None:
        """Begin to follow all kinds and to collect."""
        self._refreshing.start(supervisor)
        self._deleting.start(supervisor)
        self._deleting_owned_by_many.start(supervisor)
        self._orphaning.start(supervisor)
        looking: Controller[str] = Controller("garbage collector, definitions", self._look, clock=self._context.clock)
        looking.start(supervisor)
        self._definitions.add_handler(
            on_update=lambda old, new: looking.queue.add_after("kinds", _SOON), name="garbage collector"
        )

    def _controller(self, name: str, work: Callable[[str], Awaitable[None]], workers: int) -> Controller[str]:
        clock = self._context.clock
        queue: WorkQueue[str] = WorkQueue(clock=clock, name=name, namespace=self._graph.namespace_of)
        return Controller(name, work, workers=workers, queue=queue, clock=clock)

    async def _look(self, key: str) -> None:
        await self._resources.refresh()

    # Following

    def _resource_added(self, resource: ServedResource) -> None:
        gvr = resource.gvr
        api_version, kind = str(gvr.group_version), resource.kind
        informer = self._context.informers.of(gvr.group, gvr.version, gvr.resource)
        self._following[gvr] = informer.add_handler(
            lambda obj: self._seen(obj, api_version, kind),
            lambda old, new: self._seen(new, api_version, kind),
            self._gone,
            name="garbage collector",
        )

    async def _resource_gone(self, gvr: GroupVersionResource) -> bool:
        informers = self._context.informers
        informer = informers.of(gvr.group, gvr.version, gvr.resource)
        if informer.is_served or not informer.is_empty:
            return False  # it is back already, or its last objects have yet to be told of
        registration = self._following.pop(gvr, None)
        if registration is not None:
            informer.remove_handler(registration)
        await informers.retire(gvr)
        return True

    def _seen(self, obj: Object, api_version: str, kind: str) -> None:
        known = self._graph.get(obj["metadata"]["uid"])
        waited, was_deleted = (False, False) if known is None else (known.waits_for_dependents, known.is_deleted)
        owners_before = () if known is None else known.owners
        node, owners_changed = self._graph.put(obj, api_version, kind)
        uid = node.identity.uid
        if node.is_deleted and not was_deleted and ORPHAN in (obj["metadata"].get("finalizers") or ()):
            self._orphaning.queue.add(uid)
        if node.waits_for_dependents and not waited:
            for dependent in node.dependents:
                self._deleting.queue.add(dependent)
            self._deleting.queue.add(uid)
        if owners_changed:
            if not all(self._is_solid(owner.identity) for owner in node.owners):
                self._deleting.queue.add(uid)
            self._wake_waiting((*owners_before, *node.owners))

    def _is_solid(self, owner: Identity) -> bool:
        """Whether an owner is known to be there and to stay; once that changes its dependents are looked at."""
        known = self._graph.get(owner.uid)
        return (
            known is not None
            and not known.is_virtual
            and not known.waits_for_dependents
            and self._is_at(known.identity, owner)
        )

    def _gone(self, obj: Object) -> None:
        node = self._graph.get(obj["metadata"]["uid"])
        if node is None:
            return
        owners = node.owners
        self._graph.remove(node.identity.uid)
        for dependent in node.dependents:
            self._deleting.queue.add(dependent)
        self._wake_waiting(owners)

    def _wake_waiting(self, owners: Iterable[Owner]) -> None:
        """Owners that wait for their dependents look again: one of these is gone, or is not theirs any more."""
        for owner in owners:
            known = self._graph.get(owner.identity.uid)
            if known is not None and known.waits_for_dependents:
                self._deleting.queue.add(owner.identity.uid)

    # Deleting

    async def _attempt_to_delete(self, uid: str) -> None:
        node = self._graph.get(uid)
        if node is None or node.is_virtual:
            return
        if not node.is_deleted and sum(not self._is_known(owner.identity) for owner in node.owners) > _FEW:
            self._deleting_owned_by_many.queue.add(uid)
        else:
            await self._attempt(node)

    async def _attempt_thoroughly(self, uid: str) -> None:
        node = self._graph.get(uid)
        if node is not None and not node.is_virtual:
            await self._attempt(node)

    async def _attempt(self, node: Node) -> None:
        found = await self._read(node.identity)
        if found is None or found["metadata"]["uid"] != node.identity.uid:
            return
        metadata = found["metadata"]
        if metadata.get("deletionTimestamp"):
            if FOREGROUND in (metadata.get("finalizers") or ()):
                await self._finish_foreground(node)
        elif metadata.get("ownerReferences"):
            await self._judge(node, found)

    async def _judge(self, node: Node, found: Object) -> None:
        solid, dangling, waiting = await self._sort_owners(node, found)
        if self._graph.get(node.identity.uid) is not node or node.is_virtual:
            return  # it has gone meanwhile
        if solid:
            if dangling or waiting:
                await self._drop_owners(node.identity, found, {*dangling, *waiting})
            return
        finalizers = found["metadata"].get("finalizers") or ()
        policy: Propagation = "Background"
        if waiting and node.dependents:
            found = await self._unblock(node, found)
            policy = "Foreground"
        elif ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        await self._delete(node.identity, found, policy)

    async def _sort_owners(self, node: Node, found: Object) -> tuple[list[str], list[str], list[str]]:
        """The uids of owners that are there, of those that are not, and of those that wait for their dependents."""
        solid: list[str] = []
        dangling: list[str] = []
        waiting: list[str] = []
        namespace = node.identity.namespace
        for reference in found["metadata"]["ownerReferences"]:
            if node.is_virtual:
                break
            uid = reference["uid"]
            identity = Identity(reference["apiVersion"], reference["kind"], namespace, reference["name"], uid)
            known = self._graph.get(uid)
            if known is not None and not known.is_virtual and self._is_at(known.identity, identity):
                (waiting if known.waits_for_dependents else solid).append(uid)
            elif await self._is_absent(identity, node):
                dangling.append(uid)
            else:
                solid.append(uid)
        return solid, dangling, waiting

    def _is_at(self, known: Identity, named: Identity) -> bool:
        """Whether an object is where a dependent may have its owner: in the same namespace, or in none."""
        return known.kind == named.kind and known.namespace in ("", named.namespace)

    def _is_known(self, owner: Identity) -> bool:
        """Whether nobody has to be asked if an owner is there."""
        known = self._graph.get(owner.uid)
        return owner in self._absent or (
            known is not None and not known.is_virtual and self._is_at(known.identity, owner)
        )

    async def _is_absent(self, owner: Identity, dependent: Node) -> bool:
        if owner in self._absent:
            return True
        resource = self._resources.of_kind(owner.api_version, owner.kind)
        if resource is None:
            raise NotYet(f"no resource serves {owner.kind} of {owner.api_version}")
        if resource.namespaced and not owner.namespace:
            text = f"ownerRef [{owner.api_version}/{owner.kind}, namespace: , name: {owner.name}, uid: {owner.uid}] "
            self._warn(dependent, text + f'does not exist in namespace "{owner.namespace}"')
            return False
        await self._absent.take_turn()
        found = await self._read(owner if resource.namespaced else owner._replace(namespace=""))
        if found is not None and found["metadata"]["uid"] == owner.uid:
            return False
        self._absent.add(owner)
        return True

    async def _finish_foreground(self, node: Node) -> None:
        blocking = node.blocking()
        if blocking:
            for dependent in blocking:
                if not dependent.waits_for_dependents:
                    self._deleting.queue.add(dependent.identity.uid)
            return
        await self._drop_finalizer(node.identity, FOREGROUND)

    async def _unblock(self, node: Node, found: Object) -> Object:
        """Where owners wait for one another in a circle, nobody would ever go: let this one block nobody."""
        if not any(dependent.waits_for_dependents for dependent in node.dependents.values()):
            return found
        references = [{**each, "blockOwnerDeletion": False} for each in found["metadata"]["ownerReferences"]]
        change = {"ownerReferences": references, "resourceVersion": found["metadata"]["resourceVersion"]}
        await self._patch(node.identity, {"metadata": change})
        return await self._read(node.identity) or found

    # Orphaning

    async def _attempt_to_orphan(self, uid: str) -> None:
        node = self._graph.get(uid)
        if node is None:
            return
        for dependent in list(node.dependents.values()):
            found = await self._read(dependent.identity)
            if found is not None and found["metadata"]["uid"] == dependent.identity.uid:
                await self._drop_owners(dependent.identity, found, {uid})
        await self._drop_finalizer(node.identity, ORPHAN)

    # Reading and writing

    def _objects(self, identity: Identity) -> ResourceClient | None:
        resource = self._resources.of_kind(identity.api_version, identity.kind)
        if resource is None:
            return None
        gvr = resource.gvr
        return self._client.of(gvr.group, gvr.version, gvr.resource)

    async def _read(self, identity: Identity) -> Object | None:
        objects = self._objects(identity)
        if objects is None:
            return None
        try:
            return await objects.get(identity.namespace, identity.name)
        except errors.NotFound:
            return None

    async def _delete(self, identity: Identity, found: Object, policy: Propagation) -> None:
        objects = self._objects(identity)
        if objects is None:
            return
        metadata = found["metadata"]
        try:
            await objects.delete(
                identity.namespace,
                identity.name,
                uid=identity.uid,
                resource_version=metadata["resourceVersion"],
                propagation=policy,
            )
        except errors.NotFound:
            return

    async def _drop_owners(self, identity: Identity, found: Object, uids: set[str]) -> None:
        references = found["metadata"].get("ownerReferences") or ()
        left = [each for each in references if each["uid"] not in uids]
        if len(left) != len(references):
            metadata = {"ownerReferences": left or None, "resourceVersion": found["metadata"]["resourceVersion"]}
            await self._patch(identity, {"metadata": {**metadata, "uid": identity.uid}})

    async def _drop_finalizer(self, identity: Identity, finalizer: str) -> None:
        found = await self._read(identity)
        if found is None or found["metadata"]["uid"] != identity.uid:
            return
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if finalizer in finalizers:
            left = [each for each in finalizers if each != finalizer]
            change = {"finalizers": left, "resourceVersion": metadata["resourceVersion"], "uid": identity.uid}
            await self._patch(identity, {"metadata": change})

    async def _patch(self, identity: Identity, patch: Object) -> None:
        objects = self._objects(identity)
        if objects is None:
            return
        try:
            await objects.patch(identity.namespace, identity.name, patch, "merge")
        except errors.NotFound:
            return

    def _warn(self, node: Node, message: str) -> None:
        identity = node.identity
        about = {"metadata": {"name": identity.name, "namespace": identity.namespace, "uid": identity.uid}}
        self._events.event(
            about,
            "Warning",
            "OwnerRefInvalidNamespace",
            message,
            kind=identity.kind,
            api_version=identity.api_version,
        )
