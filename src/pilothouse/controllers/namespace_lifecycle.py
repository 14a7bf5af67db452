"""Namespaces that are being deleted: everything in them goes, then they do.

    pods first ─► all other resources, custom ones too ─► finalizer "kubernetes" taken off ─► the namespace is gone
         └ what remains, and why, is told in the conditions; looked at again soon

Each resource is asked to delete its collection; what is still there afterwards waits for its grace period or for
finalizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.discovery import ServedResource, discover
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time

_FINALIZER: Final = "kubernetes"
_ACCOUNT: Final = "namespace-controller"
_SOON: Final = 0.2
_LATER: Final = 5.0
_MOST_FINALIZERS: Final = 1_000
_OK: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def start(context: ControllerContext) -> None:
    """Start the namespace controller."""
    NamespaceLifecycle(context).controller.start(context.supervisor)


@dataclass(slots=True)
class _Remaining:
    """What is left of a namespace."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    failing_groups: tuple[str, ...] = ()

    def count(self, resource: str, finalizers: Iterable[str]) -> None:
        """One more object is left, for these finalizers: of very many names some are told."""
        self.resources[resource] += 1
        for name in finalizers:
            if name in self.finalizers or len(self.finalizers) < _MOST_FINALIZERS:
                self.finalizers[name] += 1

    def conditions(self) -> dict[str, tuple[str, str]]:
        """The conditions that are not as they should be: reason and message by type."""
        found: dict[str, tuple[str, str]] = {}
        if self.failing_groups:
            listed = ", ".join(f"{each}: stale GroupVersion discovery: {each}" for each in self.failing_groups)
            text = f"Discovery failed for some groups, {len(self.failing_groups)} failing: "
            text += f"unable to retrieve the complete list of server APIs: {listed}"
            found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", text)
        if self.failures:
            listed = ", ".join(sorted(self.failures))
            text = f"Failed to delete all resource types, {len(self.failures)} remaining: {listed}"
            found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if self.resources:
            listed = ", ".join(
                sorted(f"{name} has {count} resource instances" for name, count in self.resources.items())
            )
            found["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
        if self.finalizers:
            listed = ", ".join(
                sorted(f"{name} in {count} resource instances" for name, count in self.finalizers.items())
            )
            text = f"Some content in the namespace has finalizers remaining: {listed}"
            found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
        return found


class NamespaceLifecycle:
    """Empties and finalizes namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client: Client = context.client(_ACCOUNT)
        self._namespaces = self._client.of("", "v1", "namespaces")
        self._clock: Clock = context.clock
        self._informer = context.informers.of("", "v1", "namespaces")
        self.controller: Controller[Key] = Controller(
            _ACCOUNT, self._reconcile, workers=5, wait_for=[self._informer], clock=context.clock
        )
        self._informer.add_handler(self._seen, lambda old, new: self._seen(new), name=_ACCOUNT)

    def _seen(self, namespace: Object) -> None:
        if namespace["metadata"].get("deletionTimestamp"):
            self.controller.queue.add(key_of(namespace))

    async def _reconcile(self, key: Key) -> float | None:
        known = self._informer.lister.get(*key)
        if known is None or not known["metadata"].get("deletionTimestamp"):
            return None
        if _FINALIZER not in (known["spec"].get("finalizers") or ()):
            return None
        namespace = await self._begin(known)
        if namespace is None:
            return None
        remaining = await self._empty(namespace["metadata"]["name"])
        namespace = await self._tell(namespace, remaining)
        if remaining.resources or remaining.failures or remaining.failing_groups:
            return _LATER if remaining.finalizers or remaining.failures else _SOON
        await self._finalize(namespace)
        return None

    async def _begin(self, known: Object) -> Object | None:
        """The newest state of the namespace, in the phase Terminating."""
        try:
            namespace = await self._namespaces.get("", known["metadata"]["name"])
        except errors.NotFound:
            return None
        if namespace["metadata"]["uid"] != known["metadata"]["uid"]:
            return None
        if namespace["status"].get("phase") != "Terminating":
            namespace["status"]["phase"] = "Terminating"
            return await self._namespaces.update_status(namespace)
        return namespace

    async def _empty(self, name: str) -> _Remaining:
        found = await discover(self._client)
        remaining = _Remaining(failing_groups=found.failing)
        resources = found.with_verbs("delete", namespaced=True)
        pods = [each for each in resources if (each.gvr.group, each.gvr.resource) == ("", "pods")]
        for each in pods:
            await self._delete_all(each, name, remaining)
        if not remaining.resources:
            for each in resources:
                if each not in pods and not each.stale:
                    await self._delete_all(each, name, remaining)
        return remaining

    async def _delete_all(self, resource: ServedResource, namespace: str, remaining: _Remaining) -> None:
        gvr = resource.gvr
        objects = self._client.of(gvr.group, gvr.version, gvr.resource)
        if "list" not in resource.verbs:
            return
        try:
            if not (await objects.list(namespace, limit=1, metadata_only=True))["items"]:
                return
            if "deletecollection" in resource.verbs:
                await objects.delete_collection(namespace, propagation="Background")
            else:
                await self._delete_each(objects, namespace)
            async for each in objects.items(namespace, metadata_only=True):
                remaining.count(f"{gvr.resource}.{gvr.group}", each["metadata"].get("finalizers") or ())
        except errors.StatusError as error:
            if error.code not in (404, 405):
                remaining.failures.append(error.message)

    async def _delete_each(self, objects: Any, namespace: str) -> None:
        async for each in objects.items(namespace, metadata_only=True):
            try:
                await objects.delete(namespace, each["metadata"]["name"], propagation="Background")
            except errors.NotFound:
                continue

    async def _tell(self, namespace: Object, remaining: _Remaining) -> Object:
        """Write the conditions if they changed."""
        changed = with_conditions(namespace, remaining.conditions(), format_time(self._clock.now()))
        if changed is None:
            return namespace
        return await self._namespaces.update_status(changed)

    async def _finalize(self, namespace: Object) -> None:
        metadata = namespace["metadata"]
        finalizers = [each for each in namespace["spec"].get("finalizers") or () if each != _FINALIZER]
        body = {**namespace, "spec": {**namespace["spec"], "finalizers": finalizers}}
        try:
            await self._namespaces.update(body, subresource="finalize")
        except errors.NotFound:
            return
        except errors.Conflict:
            if (await self._namespaces.get("", metadata["name"]))["metadata"]["uid"] == metadata["uid"]:
                raise


def with_conditions(namespace: Object, failing: dict[str, tuple[str, str]], now: str) -> Object | None:
    """The namespace with its conditions brought up to date; None if they are."""
    changed = copy_of(namespace)
    conditions: list[dict[str, Any]] = changed["status"].setdefault("conditions", [])
    known = {each["type"]: each for each in conditions}
    for type, ok in _OK.items():
        status = "True" if type in failing else "False"
        reason, message = failing.get(type, ok)
        condition = known.get(type)
        if condition is None:
            condition = {"type": type, "status": status, "lastTransitionTime": now}
            conditions.append(condition)
        elif condition["status"] != status:
            condition |= {"status": status, "lastTransitionTime": now}
        condition |= {"reason": reason, "message": message}
    return None if changed == namespace else changed
