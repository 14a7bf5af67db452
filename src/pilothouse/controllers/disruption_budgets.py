"""Pod disruption budgets: how many pods may be disrupted now, for the eviction API to act upon.

    healthy now − healthy wanted = disruptions allowed

What is wanted follows from the budget and from the scale of the workloads that the pods belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.discovery import discover
from pilothouse.controllers.runtime.indexer import SELECTOR, Key, copy_of, key_of, read_selector
from pilothouse.controllers.runtime.owners import controller_of
from pilothouse.controllers.runtime.pods import condition_of, is_ready, is_terminal
from pilothouse.controllers.runtime.scaled_values import scaled
from pilothouse.controllers.runtime.selecting import Selecting
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, format_time, parse_time

_ACCOUNT: Final = "disruption-controller"
_COMPONENT: Final = "controllermanager"
_DELETION_SECONDS: Final = 120.0
_STALE_SECONDS: Final = 120.0
_SCALED: Final = {
    ("ReplicaSet", "apps"): "replicasets",
    ("StatefulSet", "apps"): "statefulsets",
    ("ReplicationController", ""): "replicationcontrollers",
}


class NoScale(Exception):
    """It is not known how many pods a workload wants; the message says why."""


def start(context: ControllerContext) -> None:
    """Start the disruption controller."""
    DisruptionController(context).start(context.supervisor)


class DisruptionController:
    """Keeps the status of budgets, and of pods that were to be disrupted and were not."""

    def __init__(self, context: ControllerContext) -> None:
        informers = context.informers
        self._clock = context.clock
        self._client = context.client(_ACCOUNT)
        self._budgets = informers.of("policy", "v1", "poddisruptionbudgets")
        self._pods = informers.of("", "v1", "pods")
        self._scales = {
            (kind, group): informers.of(group, "v1", resource) for (kind, group), resource in _SCALED.items()
        }
        self._deployments = informers.of("apps", "v1", "deployments")
        self._budget_client = self._client.of("policy", "v1", "poddisruptionbudgets")
        self._pod_client = self._client.of("", "v1", "pods")
        self._events = context.recorder(_COMPONENT, _ACCOUNT)
        waits = [self._budgets, self._pods, self._deployments, *self._scales.values()]
        self._controller: Controller[Key] = Controller(
            _ACCOUNT, self._reconcile, workers=2, wait_for=waits, clock=context.clock
        )
        self._stale: Controller[Key] = Controller(
            "stale disruptions", self._clear_stale, wait_for=[self._pods], clock=context.clock
        )
        add = self._controller.queue.add
        self._budgets.add_reading(SELECTOR, read_selector)
        self._selecting = Selecting(self._budgets, add, empty_selects=True)
        self._budgets.add_handler(lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), name=_ACCOUNT)
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_seen, name=_ACCOUNT)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)
        self._stale.start(supervisor)

    def _pod_seen(self, pod: Object) -> None:
        self._selecting.wake(pod)
        target = condition_of(pod, "DisruptionTarget")
        if target is not None and target["status"] == "True" and not pod["metadata"].get("deletionTimestamp"):
            self._stale.queue.add_after(key_of(pod), _STALE_SECONDS)

    def _pod_changed(self, old: Object, new: Object) -> None:
        if old["metadata"].get("labels") != new["metadata"].get("labels"):
            self._pod_seen(old)
        self._pod_seen(new)

    async def _reconcile(self, key: Key) -> float | None:
        budget = self._budgets.lister.get(*key)
        if budget is None:
            return None
        selector = self._budgets.lister.selector_of(budget)
        pods = [pod for pod in self._pods.lister.list(key[0], selector) if not is_terminal(pod)]
        if not pods:
            self._events.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            expected, desired = await self._expectation(budget, pods)
        except NoScale as error:
            text = f"Failed to calculate the number of expected pods: {error}"
            self._events.event(budget, "Warning", "CalculateExpectedPodCountFailed", text)
            await self._fail_safe(budget, str(error))
            raise
        now = self._clock.now()
        disrupted, again = self._still_disrupted(budget, pods, now)
        healthy = sum(1 for pod in pods if _counts(pod, disrupted))
        await self._write(budget, healthy, desired, expected, disrupted, now)
        return again

    async def _expectation(self, budget: Object, pods: Sequence[Object]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = await self._scale_of_all(budget, pods)
            return expected, max(0, expected - scaled(spec["maxUnavailable"], expected, round_up=True))
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = await self._scale_of_all(budget, pods)
            return expected, scaled(least, expected, round_up=True)
        return len(pods), int(least or 0)

    async def _scale_of_all(self, budget: Object, pods: Sequence[Object]) -> int:
        scales: dict[str, int] = {}
        unmanaged = []
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged.append(pod["metadata"]["name"])
            elif reference["uid"] not in scales:
                uid, scale = await self._scale_of(reference, pod)
                scales[uid] = scale
        if unmanaged:
            shown = labels.format_object(budget["spec"].get("selector"))
            text = (
                f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. "
                "As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
                'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer '
                "value."
            )
            self._events.event(budget, "Warning", "UnmanagedPods", text)
        return sum(scales.values())

    async def _scale_of(self, reference: Mapping[str, Any], pod: Object) -> tuple[str, int]:
        """The workload that decides how many pods there are, and how many it wants."""
        namespace = pod["metadata"]["namespace"]
        group = reference["apiVersion"].rpartition("/")[0]
        informer = self._scales.get((reference["kind"], group))
        if informer is not None:
            owner = informer.lister.get(namespace, reference["name"])
            if owner is not None and owner["metadata"]["uid"] == reference["uid"]:
                above = controller_of(owner)
                if above is not None and above["kind"] == "Deployment":
                    deployment = self._deployments.lister.get(namespace, above["name"])
                    if deployment is not None and deployment["metadata"]["uid"] == above["uid"]:
                        return above["uid"], int(deployment["spec"].get("replicas", 1))
                return reference["uid"], int(owner["spec"].get("replicas", 1))
        scale = await self._served_scale(reference, namespace)
        if scale is None:
            raise NoScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        return reference["uid"], scale

    async def _served_scale(self, reference: Mapping[str, Any], namespace: str) -> int | None:
        """What the scale subresource of the owner's kind says, if it has one."""
        group = reference["apiVersion"].rpartition("/")[0]
        for each in (await discover(self._client)).preferred:
            if (each.gvr.group, each.kind) == (group, reference["kind"]):
                owners = self._client.of(group, each.gvr.version, each.gvr.resource)
                try:
                    found = await owners.get(namespace, reference["name"], "scale")
                except errors.StatusError as error:
                    if error.code == 404:
                        text = f"{each.gvr.group_resource} does not implement the scale subresource"
                        raise NoScale(text) from None
                    raise
                return int((found.get("spec") or {}).get("replicas") or 0)
        return None

    def _still_disrupted(
        self, budget: Object, pods: Sequence[Object], now: Instant
    ) -> tuple[dict[str, str], float | None]:
        """Pods whose eviction was allowed and that are still there, and when to look at them again."""
        known: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
        left: dict[str, str] = {}
        again: float | None = None
        for pod in pods:
            metadata = pod["metadata"]
            since = known.get(metadata["name"])
            if since is None or metadata.get("deletionTimestamp"):
                continue
            seconds = _DELETION_SECONDS - now.since(parse_time(since))
            if seconds < 0:
                where = budget["metadata"]["namespace"]
                text = f"Pod was expected by PDB {where}/{where} to be deleted but it wasn't"
                self._events.event(pod, "Warning", "NotDeleted", text)
            else:
                left[metadata["name"]] = since
                again = seconds if again is None else min(again, seconds)
        return left, again

    async def _write(
        self, budget: Object, healthy: int, desired: int, expected: int, disrupted: dict[str, str], now: Instant
    ) -> None:
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = budget["metadata"].get("generation") or 0
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": generation,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        condition = ("True", "SufficientPods", "") if allowed else ("False", "InsufficientPods", "")
        await self._update(budget, status, condition, now)

    async def _fail_safe(self, budget: Object, message: str) -> None:
        """Nothing may be disrupted while it is not known what is wanted."""
        status = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
        status["observedGeneration"] = budget["metadata"].get("generation") or 0
        await self._update(budget, status, ("False", "SyncFailed", message), self._clock.now())

    async def _update(self, budget: Object, status: Object, condition: tuple[str, str, str], now: Instant) -> None:
        known = condition_of(budget, "DisruptionAllowed") or {}
        allowed, reason, message = condition
        since = known.get("lastTransitionTime") if known.get("status") == allowed else format_time(now)
        generation = budget["metadata"].get("generation") or 0
        status["conditions"] = [
            {
                "type": "DisruptionAllowed",
                "status": allowed,
                "reason": reason,
                "message": message,
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        ]
        if (budget.get("status") or {}) != status:
            await self._budget_client.update_status({**copy_of(budget), "status": status})

    async def _clear_stale(self, key: Key) -> float | None:
        """A pod was to be disrupted and nobody did it: say that it is not a target any more."""
        pod = self._pods.lister.get(*key)
        target = None if pod is None else condition_of(pod, "DisruptionTarget")
        if pod is None or target is None or target["status"] != "True" or pod["metadata"].get("deletionTimestamp"):
            return None
        if is_terminal(pod):
            return None
        now = self._clock.now()
        left = _STALE_SECONDS - now.since(parse_time(target["lastTransitionTime"]))
        if left > 0:
            return left
        condition = {"type": "DisruptionTarget", "status": "False", "lastTransitionTime": format_time(now)}
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": [condition]}}
        try:
            await self._pod_client.patch(*key, patch, "strategic", subresource="status")
        except errors.NotFound:
            return None
        return None


def _counts(pod: Object, disrupted: Mapping[str, str]) -> bool:
    metadata = pod["metadata"]
    return not metadata.get("deletionTimestamp") and metadata["name"] not in disrupted and is_ready(pod)
