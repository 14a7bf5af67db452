"""Keeps pod groups while they have pods: the finalizer goes when the group is deleted and its last pod has ended.

Groups get the finalizer from the admission plug-in of that name, where the feature ``GenericWorkload`` is on.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_NAME: Final = "podgroup-protection-controller"
_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
_ACTIVE_PODS: Final = "active-pods-by-scheduling-group"


def start(context: ControllerContext) -> None:
    """Start the controller."""
    PodGroupProtection(context).controller.start(context.supervisor)


class PodGroupProtection:
    """See the module's docstring. Keys are pod groups."""

    def __init__(self, context: ControllerContext) -> None:
        self._groups = context.informers.of("scheduling.k8s.io", "v1beta1", "podgroups")
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(_ACTIVE_PODS, lambda pod: [] if is_terminal(pod) else _group_of(pod))
        self._client = context.client(_NAME).of("scheduling.k8s.io", "v1beta1", "podgroups")
        self.controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, wait_for=[self._groups, self._pods], clock=context.clock
        )
        self._groups.add_handler(self._group_seen, lambda old, new: self._group_seen(new), name=_NAME)
        self._pods.add_handler(self._pod_seen, lambda old, new: self._pod_seen(new), self._wake_group, name=_NAME)

    def _group_seen(self, group: Object) -> None:
        if _is_candidate(group):
            self.controller.queue.add(key_of(group))

    def _pod_seen(self, pod: Object) -> None:
        if is_terminal(pod):
            self._wake_group(pod)

    def _wake_group(self, pod: Object) -> None:
        for group in _group_of(pod):
            namespace, _, name = group.partition("/")
            self.controller.queue.add((namespace, name))

    async def _reconcile(self, key: Key) -> None:
        group = self._groups.lister.get(*key)
        if group is None or not _is_candidate(group) or self._pods.lister.by_index(_ACTIVE_PODS, "/".join(key)):
            return
        changed = copy_of(group)
        changed["metadata"]["finalizers"].remove(_FINALIZER)
        try:
            await self._client.update(changed)
        except errors.NotFound:
            return


def _is_candidate(group: Object) -> bool:
    metadata = group["metadata"]
    return bool(metadata.get("deletionTimestamp")) and _FINALIZER in (metadata.get("finalizers") or ())


def _group_of(pod: Object) -> list[str]:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []
