"""Keeps one pod of each daemon set on every node that it means, and moves them from template to template.

    revision of the template ─► a pod for each node, no others ─► old pods replaced ─► old revisions dropped ─► status

A round sees all that the round before has done, or waits for it.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.daemon_sets.backoff import FailedPodBackoff
from pilothouse.controllers.daemon_sets.placement import HASH, Placement, by_node, make_pod
from pilothouse.controllers.daemon_sets.rollout import Plan, View, plan_nodes, plan_update, status_of
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import results_of, slow_start_batch
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, SELECTOR, Key, key_of, read_selector, working_copy
from pilothouse.controllers.runtime.own_writes import OwnWrites
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_of, owners_to_wake, recheck_owner
from pilothouse.controllers.runtime.pod_control import PodControl, is_namespace_terminating
from pilothouse.controllers.runtime.pods import phase_of, seconds_until_available
from pilothouse.controllers.runtime.revision_history import RevisionHistory, RevisionStyle, hash_of
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_NAME: Final = "daemonset-controller"
_ACCOUNT: Final = "daemon-set-controller"
_STYLE: Final = RevisionStyle("DaemonSet", HASH)
_BURST: Final = 250


class DaemonSetController:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_ACCOUNT)
        self._clock = context.clock
        self._sets = context.informers.of("apps", "v1", "daemonsets")
        self._sets.add_reading(SELECTOR, read_selector)
        self._nodes = context.informers.of("", "v1", "nodes")
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(BY_CONTROLLER_UID)
        revisions = context.informers.of("apps", "v1", "controllerrevisions")
        self._set_client, self._pod_client = client.of("apps", "v1", "daemonsets"), client.of("", "v1", "pods")
        self._events = context.recorder(_NAME, _ACCOUNT)
        self._control = PodControl(client, self._events)
        self._history = RevisionHistory(revisions, client.of("apps", "v1", "controllerrevisions"), _STYLE)
        self._writes: OwnWrites[Key] = OwnWrites()
        self._backoff = FailedPodBackoff(context.clock)
        self._controller: Controller[Key] = Controller(
            _NAME,
            self._reconcile,
            workers=2,
            wait_for=[self._sets, self._nodes, self._pods, revisions],
            clock=context.clock,
        )
        add = self._controller.queue.add
        self._sets.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), self._gone, name=_NAME)
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_seen, name=_NAME)
        self._nodes.add_handler(self._wake_all, self._node_changed, self._wake_all, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)

    # Following

    def _gone(self, daemon_set: Object) -> None:
        self._backoff.forget(daemon_set["metadata"]["uid"])
        self._writes.forget(key_of(daemon_set))

    def _pod_seen(self, pod: Object) -> None:
        for key in owners_to_wake(pod, "DaemonSet", self._sets.lister):
            self._controller.queue.add(key)

    def _pod_changed(self, old: Object, new: Object) -> None:
        if controller_of(old) != controller_of(new):
            self._pod_seen(old)
        self._pod_seen(new)

    def _wake_all(self, node: Object) -> None:
        for each in self._sets.lister.list():
            self._controller.queue.add(key_of(each))

    def _node_changed(self, old: Object, new: Object) -> None:
        if _selected_by(old) != _selected_by(new):
            self._wake_all(new)

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        known = self._sets.lister.get(*key)
        if known is None or known["metadata"].get("deletionTimestamp") or self._writes.are_unseen(key):
            return None
        daemon_set = working_copy(known)
        selector = self._sets.lister.selector_of(known)
        if selector.empty:
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._events.event(daemon_set, "Warning", "SelectingAll", text)
            return None
        revisions = await self._history.list(daemon_set, selector, recheck_owner(self._set_client, daemon_set))
        collisions = (daemon_set.get("status") or {}).get("collisionCount") or 0
        current, collisions = await self._history.ensure(daemon_set, revisions, collisions)
        view, again = await self._view(daemon_set, selector, hash_of(current, _STYLE)), None
        failure: Exception | None = None
        try:
            again = await self._manage(key, view)
            if not self._writes.are_unseen(key):
                await self._carry_out(key, view, plan_update(view))
            await self._drop_revisions(view, [each for each in revisions if not _is_same(each, current)])
        except errors.StatusError as error:
            failure = error
        await self._write_status(key, view, collisions)
        if failure is not None:
            raise failure
        return _earliest(again, self._until_available(view))

    async def _view(self, daemon_set: Object, selector: labels.Selector, digest: str) -> View:
        namespace = daemon_set["metadata"]["namespace"]
        owned = self._pods.lister.by_index(BY_CONTROLLER_UID, daemon_set["metadata"]["uid"])
        orphans = [pod for pod in self._pods.lister.list(namespace, selector) if controller_of(pod) is None]
        recheck = recheck_owner(self._set_client, daemon_set)
        claim = ControllerRefClaim(self._pod_client, daemon_set, "DaemonSet", "apps/v1", selector, recheck)
        pods = await claim.claim_all([*owned, *orphans])
        nodes = sorted(self._nodes.lister.list(), key=lambda node: str(node["metadata"]["name"]))
        return View(daemon_set, digest, nodes, by_node(pods), Placement(daemon_set), self._clock.now())

    async def _manage(self, key: Key, view: View) -> float | None:
        """Give each node what it should have; seconds until a failed pod may be replaced, if one has to wait."""
        waits: list[float] = []

        def is_backed_off(node: str) -> bool:
            wait = self._backoff.wait(view.daemon_set, node)
            if wait > 0:
                waits.append(wait)
            return wait > 0

        plan = plan_nodes(view, is_backed_off)
        for pod, node in plan.ended:
            self._tell_ended(view.daemon_set, pod, node)
        await self._carry_out(key, view, plan)
        return min(waits, default=None)

    def _tell_ended(self, daemon_set: Object, pod: Object, node: str) -> None:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if phase_of(pod) == "Failed":
            text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
            self._events.event(daemon_set, "Warning", "FailedDaemonPod", text)
        else:
            text = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
            self._events.event(daemon_set, "Normal", "SucceededDaemonPod", text)

    async def _carry_out(self, key: Key, view: View, plan: Plan) -> None:
        """Create and delete; the first failure is raised when all was tried that may be tried."""
        nodes, doomed = plan.create[:_BURST], plan.delete[:_BURST]

        async def create(number: int) -> None:
            pod = make_pod(view.daemon_set, nodes[number], view.digest)
            try:
                self._writes.wrote(key, self._pods, await self._control.create(pod, view.daemon_set))
            except errors.StatusError as error:
                if not is_namespace_terminating(error):
                    raise

        async def delete(pod: Object) -> errors.StatusError | None:
            metadata = pod["metadata"]
            try:
                answer = await self._control.delete(
                    metadata["namespace"], metadata["name"], view.daemon_set, metadata["uid"]
                )
            except errors.StatusError as error:
                return None if isinstance(error, errors.NotFound) else error
            self._writes.wrote(key, self._pods, answer)
            return None

        _, failure = await slow_start_batch(len(nodes), create)
        failures = [each for each in await results_of(list(doomed), delete) if each is not None]
        first = failure or (failures[0] if failures else None)
        if first is not None:
            raise first

    async def _drop_revisions(self, view: View, old: list[Object]) -> None:
        limit = view.daemon_set["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        live = {
            (pod["metadata"].get("labels") or {}).get(HASH)
            for pod in self._pods.lister.by_index(BY_CONTROLLER_UID, view.daemon_set["metadata"]["uid"])
        }
        dead = [each for each in old if hash_of(each, _STYLE) not in live]
        await self._history.drop_oldest(dead, len(old) - limit)

    # Status

    async def _write_status(self, key: Key, view: View, collisions: int) -> None:
        known = view.daemon_set.get("status") or {}
        status = status_of(view)
        if collisions or "collisionCount" in known:
            status["collisionCount"] = collisions
        if known.get("conditions"):
            status["conditions"] = known["conditions"]
        if status == known:
            return
        try:
            written = await self._set_client.update_status({**view.daemon_set, "status": status})
        except errors.NotFound:
            return
        self._writes.wrote(key, self._sets, written)

    def _until_available(self, view: View) -> float | None:
        seconds = view.daemon_set["spec"].get("minReadySeconds") or 0
        return seconds_until_available([pod for pods in view.pods.values() for pod in pods], seconds, view.now)


def _selected_by(node: Object) -> tuple[object, object]:
    """What of a node decides whether it is meant."""
    return node["metadata"].get("labels") or {}, node["spec"].get("taints") or []


def _is_same(left: Object, right: Object) -> bool:
    return bool(left["metadata"]["uid"] == right["metadata"]["uid"])


def _earliest(*waits: float | None) -> float | None:
    return min((each for each in waits if each is not None), default=None)
