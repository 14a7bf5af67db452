"""The controller: pods are looked at when their claims, the taints of their devices or rules change, and then in time.

A rule's condition is written at once when the rule changes, and at most every ten seconds while pods go because of it.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pilothouse.controllers.device_taints.evictions import Taints, pools_of, results_of, selects
from pilothouse.controllers.device_taints.rules import CONDITION, condition
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time, parse_time

_NAME: Final = "device-taint-eviction-controller"
_STATUS_SECONDS: Final = 10.0


class Item(NamedTuple):
    """A pod or a rule."""

    kind: Literal["pod", "rule"]
    namespace: str
    name: str


class DeviceTaintEviction:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        informers, client = context.informers, context.client(_NAME)
        self._clock = context.clock
        self._pods = informers.of("", "v1", "pods")
        self._claims = informers.of("resource.k8s.io", "v1", "resourceclaims")
        self._slices = informers.of("resource.k8s.io", "v1", "resourceslices")
        self._rules = informers.of("resource.k8s.io", "v1", "devicetaintrules")
        self._taints = Taints(self._claims, self._slices)
        self._pod_client = client.of("", "v1", "pods")
        self._rule_client = client.of("resource.k8s.io", "v1", "devicetaintrules")
        self._events = context.recorder(_NAME, _NAME)
        self._waiting: dict[str, frozenset[str]] = {}
        """The rules because of which a pod, by uid, is to be evicted."""
        self._evicted: dict[str, int] = {}
        """How many pods went because of a rule, by its uid."""
        waits = [self._pods, self._claims, self._slices, self._rules]
        self.controller: Controller[Item] = Controller(
            _NAME, self._reconcile, workers=8, wait_for=waits, clock=context.clock
        )
        self._claims.add_handler(
            self._wake_consumers, lambda old, new: self._claim_changed(old, new), self._wake_consumers, name=_NAME
        )
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_gone, name=_NAME)
        self._slices.add_handler(self._slice_seen, self._slice_changed, self._slice_seen, name=_NAME)
        self._rules.add_handler(self._rule_seen, self._rule_changed, self._rule_gone, name=_NAME)

    # Following

    def _pod_seen(self, pod: Object) -> None:
        if pod["spec"].get("resourceClaims"):
            self.controller.queue.add(Item("pod", *key_of(pod)))

    def _pod_changed(self, old: Object, new: Object) -> None:
        was_there = old["spec"].get("nodeName") == new["spec"].get("nodeName")
        if not was_there or _claim_statuses(old) != _claim_statuses(new):
            self._pod_seen(new)

    def _pod_gone(self, pod: Object) -> None:
        for uid in self._waiting.pop(pod["metadata"]["uid"], ()):
            self._look_at_rule_soon(uid)

    def _claim_changed(self, old: Object, new: Object) -> None:
        if (old.get("status") or {}) != (new.get("status") or {}):
            self._wake_consumers(old)
            self._wake_consumers(new)

    def _wake_consumers(self, claim: Object) -> None:
        for each in (claim.get("status") or {}).get("reservedFor") or ():
            if each["resource"] == "pods":
                self.controller.queue.add(Item("pod", claim["metadata"]["namespace"], each["name"]))

    def _slice_seen(self, part: Object) -> None:
        if _has_evicting_taints(part):
            self._wake_pool(part)

    def _slice_changed(self, old: Object, new: Object) -> None:
        if _has_evicting_taints(old) or _has_evicting_taints(new):
            self._wake_pool(new)

    def _wake_pool(self, part: Object) -> None:
        [pool] = pools_of(part)
        for claim in self._claims.lister.list():
            if any(f"{each['driver']}/{each['pool']}" == pool for each in results_of(claim)):
                self._wake_consumers(claim)

    def _rule_seen(self, rule: Object) -> None:
        self.controller.queue.add(Item("rule", *key_of(rule)))
        self._wake_selected(rule)

    def _rule_changed(self, old: Object, new: Object) -> None:
        if old["spec"] != new["spec"]:
            self._wake_selected(old)
            self._rule_seen(new)

    def _rule_gone(self, rule: Object) -> None:
        self._evicted.pop(rule["metadata"]["uid"], None)
        self._wake_selected(rule)

    def _wake_selected(self, rule: Object) -> None:
        if rule["spec"]["taint"]["effect"] != "NoExecute":
            return
        for claim in self._claims.lister.list():
            if any(selects(rule, each) for each in results_of(claim)):
                self._wake_consumers(claim)

    def _look_at_rule_soon(self, uid: str) -> None:
        for rule in self._rules.lister.list():
            if rule["metadata"]["uid"] == uid:
                self.controller.queue.add_after(Item("rule", *key_of(rule)), _STATUS_SECONDS)

    async def _reconcile(self, item: Item) -> float | None:
        if item.kind == "rule":
            return await self._sync_rule(item)
        return await self._sync_pod(item)

    # Pods

    async def _sync_pod(self, item: Item) -> float | None:
        pod = self._pods.lister.get(item.namespace, item.name)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return None
        uid = pod["metadata"]["uid"]
        eviction = self._taints.eviction_of(pod, self._rules.lister.list())
        if eviction is None:
            if self._waiting.pop(uid, None) is not None:
                self._events.event(pod, "Normal", "DeviceTaintManagerEviction", "Cancelling deletion")
            return None
        self._waiting[uid] = eviction.rules
        left = eviction.when - self._clock.now().seconds
        if left <= 0:
            await self._evict(pod)
            for rule in eviction.rules:
                self._evicted[rule] = self._evicted.get(rule, 0) + 1
        for rule in eviction.rules:
            self._look_at_rule_soon(rule)
        return left if left > 0 else None

    async def _evict(self, pod: Object) -> None:
        metadata = pod["metadata"]
        where = (metadata["namespace"], metadata["name"])
        self._events.event(pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion")
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [target]}}
        try:
            await self._pod_client.patch(*where, patch, "strategic", subresource="status")
            await self._pod_client.delete(*where, uid=metadata["uid"])
        except errors.NotFound:
            return

    # Rules

    async def _sync_rule(self, item: Item) -> float | None:
        rule = self._rules.lister.get(item.namespace, item.name)
        if rule is None:
            return None
        known = next((each for each in _conditions(rule) if each["type"] == CONDITION), None)
        if known is not None and known.get("observedGeneration") == rule["metadata"].get("generation"):
            since = self._clock.now().since(parse_time(known["lastTransitionTime"]))
            if since < _STATUS_SECONDS:
                return _STATUS_SECONDS - since
        wanted = self._condition(rule)
        if known is not None and all(known.get(name) == value for name, value in wanted.items()):
            return None
        wanted["lastTransitionTime"] = format_time(self._clock.now())
        applied = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": item.name, "uid": rule["metadata"]["uid"]},
            "status": {"conditions": [wanted]},
        }
        try:
            await self._rule_client.apply(applied, _NAME, force=True, subresource="status")
        except errors.NotFound:
            return None
        return None

    def _condition(self, rule: Object) -> Object:
        uid = rule["metadata"]["uid"]
        as_if = {**rule, "spec": {**rule["spec"], "taint": {**rule["spec"]["taint"], "effect": "NoExecute"}}}
        is_preview = rule["spec"]["taint"]["effect"] == "None"
        pods = [
            pod
            for pod in self._pods.lister.list()
            if pod["spec"].get("resourceClaims") and not pod["metadata"].get("deletionTimestamp")
        ]
        rules = [as_if] if is_preview else self._rules.lister.list()
        waiting = [
            pod
            for pod in pods
            if (eviction := self._taints.eviction_of(pod, rules)) is not None and uid in eviction.rules
        ]
        published, allocated = self._selected(rule) if is_preview else (0, 0)
        return condition(rule, waiting, self._evicted.get(uid, 0), published, allocated)

    def _selected(self, rule: Object) -> tuple[int, int]:
        """How many devices the rule selects: of those published, and of those allocated."""
        published = sum(
            selects(
                rule, {"driver": part["spec"]["driver"], "pool": part["spec"]["pool"]["name"], "device": each["name"]}
            )
            for part in self._slices.lister.list()
            for each in part["spec"].get("devices") or ()
        )
        allocated = sum(selects(rule, each) for claim in self._claims.lister.list() for each in results_of(claim))
        return published, allocated


def _claim_statuses(pod: Object) -> object:
    return (pod.get("status") or {}).get("resourceClaimStatuses")


def _has_evicting_taints(part: Object) -> bool:
    return any(
        taint["effect"] == "NoExecute"
        for device in part["spec"].get("devices") or ()
        for taint in device.get("taints") or ()
    )


def _conditions(rule: Object) -> list[Object]:
    conditions: list[Object] = (rule.get("status") or {}).get("conditions") or []
    return conditions
