"""What a daemon set has to do: pure, from its nodes and pods to pods to delete and nodes to serve.

plan_nodes     each node that is meant has one living pod, no other node has any
plan_update    old pods are replaced, with so many missing (maxUnavailable) or so many more (maxSurge) at a time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pilothouse.controllers.daemon_sets.placement import Placement, is_updated, oldest_first
from pilothouse.controllers.runtime.pods import is_available, is_ready, phase_of
from pilothouse.controllers.runtime.scaled_values import scaled
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant

NodePods = Mapping[str, Sequence[Object]]


@dataclass
class Plan:
    """Pods to delete, and nodes to create a pod for."""

    delete: list[Object] = field(default_factory=list)
    create: list[str] = field(default_factory=list)
    ended: list[tuple[Object, str]] = field(default_factory=list)
    """Ended pods among those to delete, with their node: they are told of."""


class View(NamedTuple):
    """A daemon set and what there is of it."""

    daemon_set: Object
    digest: str
    nodes: Sequence[Object]
    pods: NodePods
    placement: Placement
    now: Instant

    def is_available(self, pod: Object) -> bool:
        """Whether a pod has been ready for long enough."""
        return is_available(pod, self.daemon_set["spec"].get("minReadySeconds") or 0, self.now)

    def is_updated(self, pod: Object) -> bool:
        """Whether a pod was made from the present template."""
        return is_updated(self.daemon_set, pod, self.digest)

    def is_meant(self, node: str) -> bool:
        """Whether a node is to have a pod."""
        found = next((each for each in self.nodes if each["metadata"]["name"] == node), None)
        return found is not None and self.placement.suits(found).runs


def _rolling(daemon_set: Object, name: str, whole: int) -> int:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "RollingUpdate":
        return 0
    return scaled((strategy.get("rollingUpdate") or {}).get(name), whole, round_up=True)


def allows_surge(daemon_set: Object) -> bool:
    """Whether a node may have two pods during an update."""
    return _rolling(daemon_set, "maxSurge", 1) > 0


def plan_nodes(view: View, is_backed_off: Callable[[str], bool]) -> Plan:
    """Give each node what it should have. ``is_backed_off`` says that a node's failed pod has to stay for now."""
    plan = Plan()
    for node in view.nodes:
        name = node["metadata"]["name"]
        suits, pods = view.placement.suits(node), view.pods.get(name) or ()
        living = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        if suits.runs and not pods:
            plan.create.append(name)
        elif not suits.keeps:
            plan.delete += living
        else:
            running = _drop_ended(plan, name, living, is_backed_off)
            _thin_out(plan, view, name, running, suits.runs)
    there = {node["metadata"]["name"] for node in view.nodes}
    for name, pods in view.pods.items():
        if name not in there:
            plan.delete += [pod for pod in pods if not pod["spec"].get("nodeName")]
    return plan


def _drop_ended(plan: Plan, node: str, pods: Sequence[Object], is_backed_off: Callable[[str], bool]) -> list[Object]:
    """Delete pods that have ended; those that have not."""
    running = []
    for pod in pods:
        phase = phase_of(pod)
        if phase not in ("Failed", "Succeeded"):
            running.append(pod)
        elif phase == "Succeeded" or not is_backed_off(node):
            plan.delete.append(pod)
            plan.ended.append((pod, node))
    return running


def _thin_out(plan: Plan, view: View, node: str, running: Sequence[Object], runs: bool) -> None:
    """Leave one pod, or one old and one new where a surge is allowed."""
    running = oldest_first(running)
    if not allows_surge(view.daemon_set):
        plan.delete += running[1:]
        return
    if not running:
        if runs:
            plan.create.append(node)
        return
    if len(running) == 1:
        return
    new = [pod for pod in running if view.is_updated(pod)]
    old = [pod for pod in running if not view.is_updated(pod)]
    plan.delete += [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or view.is_available(new[0])):
        plan.delete.append(old[0])


def plan_update(view: View) -> Plan:
    """Replace old pods, as many as may be."""
    if (view.daemon_set["spec"].get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return Plan()
    meant = [node["metadata"]["name"] for node in view.nodes if view.placement.suits(node).runs]
    pods = {**view.pods, **{name: view.pods.get(name) or () for name in meant}}
    surge = _rolling(view.daemon_set, "maxSurge", len(meant))
    missing = _rolling(view.daemon_set, "maxUnavailable", len(meant))
    if surge:
        return _plan_surge(view, pods, surge, len(meant))
    return _plan_replacement(view, pods, missing or 1)


def _pair(view: View, pods: Sequence[Object]) -> tuple[Object | None, Object | None] | None:
    """The new and the old pod of a node; None if there are too many to tell."""
    living = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    new = [pod for pod in living if view.is_updated(pod)]
    old = [pod for pod in living if not view.is_updated(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return (new[0] if new else None, old[0] if old else None)


def _plan_replacement(view: View, node_pods: NodePods, most: int) -> Plan:
    plan, candidates, unavailable = Plan(), [], 0
    for pods in node_pods.values():
        pair = _pair(view, pods)
        new, old = pair if pair is not None else (None, None)
        if pair is None or (new is None) == (old is None):
            unavailable += 1
        elif new is not None:
            unavailable += not view.is_available(new)
        elif old is not None and not view.is_available(old):
            plan.delete.append(old)  # it does not work anyway
            unavailable += 1
        elif old is not None:
            candidates.append(old)
    plan.delete += candidates[: max(0, most - unavailable)]
    return plan


def _plan_surge(view: View, node_pods: NodePods, most: int, wanted: int) -> Plan:
    plan = Plan()
    candidates: list[str] = []
    unmeant: list[Object] = []
    surging = available = 0
    for name, pods in node_pods.items():
        pair = _pair(view, pods)
        if pair is None:
            surging += 1
            continue
        new, old = pair
        standing = old or new
        available += standing is not None and view.is_available(standing)
        if old is None:
            continue
        if new is not None:
            if view.is_available(new):
                plan.delete.append(old)
            else:
                surging += 1
        elif not view.is_meant(name):
            (unmeant if view.is_available(old) else plan.delete).append(old)
        elif view.is_available(old):
            candidates.append(name)
        else:
            plan.create.append(name)  # it does not work anyway
    plan.delete += unmeant[: max(0, available - wanted)]
    plan.create += candidates[: max(0, most - surging)]
    return plan


def status_of(view: View) -> Object:
    """The status: how many nodes are meant, served, served well, and served with the present template."""
    counts = dict.fromkeys(
        (
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ),
        0,
    )
    for node in view.nodes:
        pods = view.pods.get(node["metadata"]["name"]) or ()
        if not view.placement.suits(node).runs:
            counts["numberMisscheduled"] += bool(pods)
            continue
        counts["desiredNumberScheduled"] += 1
        if pods:
            pod = oldest_first(pods)[0]
            counts["currentNumberScheduled"] += 1
            counts["numberReady"] += is_ready(pod)
            counts["numberAvailable"] += view.is_available(pod)
            counts["updatedNumberScheduled"] += view.is_updated(pod)
    counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
    always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    status: Object = {name: count for name, count in counts.items() if count or name in always}
    status["observedGeneration"] = view.daemon_set["metadata"].get("generation") or 0
    return status
