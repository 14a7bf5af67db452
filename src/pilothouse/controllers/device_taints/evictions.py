"""When a pod has to go because of the taints of its devices, and because of which rules.

Taints stand in the slices of drivers, or come from rules that select devices. What counts is what the claims of the pod
have, and what their requests tolerate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.owners import is_controlled_by
from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import parse_time

SLICES_BY_POOL: Final = "resource-slices-by-pool"


class Eviction(NamedTuple):
    """Since when, in seconds of the wall clock, and the uids of the rules that want it."""

    when: float
    rules: frozenset[str]


def pool_key(driver: str, pool: str) -> str:
    """A pool as the index of slices knows it."""
    return f"{driver}/{pool}"


def pools_of(part: Object) -> list[str]:
    """The pool of a slice, for the index."""
    return [pool_key(part["spec"]["driver"], part["spec"]["pool"]["name"])]


def results_of(claim: Object) -> Sequence[Object]:
    """The devices that a claim has."""
    results: Sequence[Object] = (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get(
        "results"
    ) or ()
    return results


def selects(rule: Object, result: Object) -> bool:
    """Whether a rule means an allocated device."""
    selector = rule["spec"].get("deviceSelector")
    return selector is not None and all(
        selector.get(name, result[name]) == result[name] for name in ("driver", "pool", "device")
    )


def consumers_of(claim: Object) -> set[str]:
    """The uids of the pods that use a claim."""
    return {each["uid"] for each in (claim.get("status") or {}).get("reservedFor") or () if each["resource"] == "pods"}


class Taints:
    """What is known of claims, slices and rules, asked about pods."""

    def __init__(self, claims: Informer, slices: Informer) -> None:
        self._claims, self._slices = claims, slices
        slices.add_index(SLICES_BY_POOL, pools_of)

    def eviction_of(self, pod: Object, rules: Iterable[Object]) -> Eviction | None:
        """When the pod has to go; None if it may stay."""
        if not pod["spec"].get("nodeName"):
            return None
        listed = list(rules)
        found = [each for claim in self.claims_of(pod) for each in self._of_claim(claim, listed)]
        if not found:
            return None
        return Eviction(min(when for when, _ in found), frozenset(uid for _, uid in found if uid))

    def claims_of(self, pod: Object) -> Iterable[Object]:
        """The claims that are allocated and reserved for the pod."""
        made = {
            each["name"]: each.get("resourceClaimName")
            for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        for entry in pod["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or made.get(entry["name"])
            claim = self._claims.lister.get(pod["metadata"]["namespace"], name) if name else None
            if claim is None or pod["metadata"]["uid"] not in consumers_of(claim):
                continue
            if "resourceClaimName" in entry or is_controlled_by(claim, pod):
                yield claim

    def _of_claim(self, claim: Object, rules: Sequence[Object]) -> Iterable[tuple[float, str]]:
        for result in results_of(claim):
            for taint, uid in self._taints_of(result, rules):
                due = _due(taint, result.get("tolerations") or ())
                if due is not None:
                    yield due, uid

    def _taints_of(self, result: Object, rules: Sequence[Object]) -> Iterable[tuple[Object, str]]:
        for device in self._devices(result):
            yield from ((taint, "") for taint in device.get("taints") or () if taint["effect"] == "NoExecute")
        for rule in rules:
            if rule["spec"]["taint"]["effect"] == "NoExecute" and selects(rule, result):
                yield rule["spec"]["taint"], rule["metadata"]["uid"]

    def _devices(self, result: Object) -> Iterable[Object]:
        slices = self._slices.lister.by_index(SLICES_BY_POOL, pool_key(result["driver"], result["pool"]))
        newest = max((each["spec"]["pool"]["generation"] for each in slices), default=0)
        for part in slices:
            if part["spec"]["pool"]["generation"] == newest:
                yield from (each for each in part["spec"].get("devices") or () if each["name"] == result["device"])


def _due(taint: Object, tolerations: Iterable[Object]) -> float | None:
    """From when on a taint is not tolerated; None where it always is."""
    added = parse_time(taint["timeAdded"]).seconds if taint.get("timeAdded") else 0.0
    covering = [each for each in tolerations if each.get("effect") == "NoExecute" and tolerates(each, taint)]
    if not covering:
        return added
    limits = [each.get("tolerationSeconds") for each in covering]
    return None if None in limits else added + min(max(0, each) for each in limits if each is not None)
