"""Storage versions that servers have reported are forgotten when the lease of their server has gone."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time

_ACCOUNT: Final = "storage-version-garbage-collector"
_COMPONENT: Final = ("apiserver.kubernetes.io/identity", "kube-apiserver")


def start(context: ControllerContext) -> None:
    """Start the collector."""
    StorageVersionCollector(context).controller.start(context.supervisor)


class StorageVersionCollector:
    """Looks at storage versions when they change and when a server's lease goes."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._versions = context.informers.of("internal.apiserver.k8s.io", "v1alpha1", "storageversions")
        leases = context.informers.of("coordination.k8s.io", "v1", "leases")
        client = context.client(_ACCOUNT)
        self._client = client.of("internal.apiserver.k8s.io", "v1alpha1", "storageversions")
        self._leases = client.of("coordination.k8s.io", "v1", "leases")
        self.controller: Controller[Key] = Controller(
            "storageversion-garbage-collector-controller",
            self._reconcile,
            wait_for=[self._versions, leases],
            clock=context.clock,
        )
        add = self.controller.queue.add
        self._versions.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name=_ACCOUNT)
        leases.add_handler(on_delete=self._lease_gone, name=_ACCOUNT)

    def _lease_gone(self, lease: Object) -> None:
        if _is_of_server(lease):
            for version in self._versions.lister.list():
                self.controller.queue.add(key_of(version))

    async def _reconcile(self, key: Key) -> None:
        version = self._versions.lister.get(*key)
        reported = [] if version is None else (version.get("status") or {}).get("storageVersions") or []
        if version is None or not reported:
            return
        left = [each for each in reported if await self._is_alive(each["apiServerID"])]
        if len(left) == len(reported):
            return
        try:
            if left:
                await self._client.update_status(with_versions(version, left, format_time(self._clock.now())))
            else:
                await self._client.delete(*key)
        except errors.NotFound:
            return

    async def _is_alive(self, server: str) -> bool:
        try:
            return _is_of_server(await self._leases.get("kube-system", server))
        except errors.NotFound:
            return False


def with_versions(version: Object, reported: list[dict[str, Any]], now: str) -> Object:
    """A storage version with what servers report, and whether they agree."""
    changed = copy_of(version)
    status = changed["status"]
    status["storageVersions"] = reported
    status.pop("commonEncodingVersion", None)
    encodings = {each["encodingVersion"] for each in reported}
    agree = len(encodings) == 1
    if agree:
        status["commonEncodingVersion"] = encodings.pop()
    known = condition_of(version, "AllEncodingVersionsEqual") or {}
    condition = {
        "type": "AllEncodingVersionsEqual",
        "status": "True" if agree else "False",
        "reason": "CommonEncodingVersionSet" if agree else "CommonEncodingVersionUnset",
        "message": "Common encoding version set" if agree else "Common encoding version unset",
        "observedGeneration": version["metadata"].get("generation") or 0,
    }
    same = known.get("status") == condition["status"]
    condition["lastTransitionTime"] = known["lastTransitionTime"] if same else now
    others = [each for each in status.get("conditions") or () if each["type"] != "AllEncodingVersionsEqual"]
    status["conditions"] = [*others, condition]
    return changed


def _is_of_server(lease: Object) -> bool:
    name, value = _COMPONENT
    return bool((lease["metadata"].get("labels") or {}).get(name) == value)
