"""How large each replica set of a deployment is to be. Pure arithmetic: sizes go in, sizes come out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pilothouse.controllers.deployments.limits import is_rolling, max_surge, max_unavailable, replicas_of
from pilothouse.controllers.deployments.revisions import DESIRED, MOST, by_age
from pilothouse.machinery.objects import Object

Sizes = list[tuple[Object, int]]
"""Replica sets with the size that each is to have."""


def available_of(replica_set: Object) -> int:
    """How many of its pods are available."""
    return int((replica_set.get("status") or {}).get("availableReplicas") or 0)


def total(replica_sets: Sequence[Object]) -> int:
    """How many pods they want together."""
    return sum(map(replicas_of, replica_sets))


def active(replica_sets: Sequence[Object]) -> list[Object]:
    """Those that want any pods."""
    return [each for each in replica_sets if replicas_of(each) > 0]


def new_size(deployment: Object, every: Sequence[Object], size: int) -> int:
    """How large the new replica set may be now, being of this size."""
    wanted = replicas_of(deployment)
    if not is_rolling(deployment):
        return wanted
    most = wanted + max_surge(deployment)
    now = total(every)
    return size if now >= most else size + min(most - now, wanted - size)


def shrink_old(deployment: Object, new: Object, old: Sequence[Object]) -> Sizes:
    """The sizes of old replica sets in a rolling update: first what is unhealthy, then all that can be spared."""
    old = by_age(active(old))
    wanted, missing = replicas_of(deployment), max_unavailable(deployment)
    least = wanted - missing
    spare = total([*old, new]) - least - (replicas_of(new) - available_of(new))
    if not old or spare <= 0:
        return []
    sizes = {id(each): replicas_of(each) for each in old}
    cleaned = 0
    for each in old:
        unhealthy = min(spare - cleaned, sizes[id(each)] - available_of(each))
        if unhealthy > 0:
            sizes[id(each)] -= unhealthy
            cleaned += unhealthy
    left = sum(map(available_of, [*old, new])) - least
    for each in old:
        taken = min(sizes[id(each)], max(0, left))
        sizes[id(each)] -= taken
        left -= taken
    return [(each, sizes[id(each)]) for each in old if sizes[id(each)] != replicas_of(each)]


def is_scaling(deployment: Object, every: Sequence[Object]) -> bool:
    """Whether the number of replicas was changed since the replica sets were last sized."""
    wanted = str(replicas_of(deployment))
    for each in active(every):
        desired = (each["metadata"].get("annotations") or {}).get(DESIRED)
        if desired is not None and desired != wanted:
            return True
    return False


def scale(deployment: Object, new: Object | None, old: Sequence[Object]) -> Sizes:
    """The sizes after the number of replicas was changed: of the one that is active, or of all in proportion."""
    wanted = replicas_of(deployment)
    single = _active_or_latest(new, old)
    if single is not None:
        return [(single, wanted)] if replicas_of(single) != wanted else []
    if new is not None and _is_saturated(deployment, new):
        return [(each, 0) for each in active(old)]
    return _in_proportion(deployment, new, old) if is_rolling(deployment) else []


def _active_or_latest(new: Object | None, old: Sequence[Object]) -> Object | None:
    some = active([*old, *([] if new is None else [new])])
    if len(some) > 1:
        return None
    if some:
        return some[0]
    return new if new is not None else next(reversed(by_age(old)), None)


def _is_saturated(deployment: Object, new: Object) -> bool:
    wanted = replicas_of(deployment)
    desired = (new["metadata"].get("annotations") or {}).get(DESIRED)
    return replicas_of(new) == wanted and desired == str(wanted) and available_of(new) == wanted


def _in_proportion(deployment: Object, new: Object | None, old: Sequence[Object]) -> Sizes:
    every = active([*old, *([] if new is None else [new])])
    wanted = replicas_of(deployment)
    to_add = (wanted + max_surge(deployment) if wanted else 0) - total(every)
    ordered = by_age(every)
    if to_add > 0:
        ordered.reverse()
    ordered.sort(key=replicas_of, reverse=True)
    sizes: list[int] = []
    added = 0
    for each in ordered:
        share = 0 if to_add == added else _fraction(each, deployment)
        share = min(share, to_add - added) if to_add > 0 else max(share, to_add - added)
        sizes.append(replicas_of(each) + share)
        added += share
    if ordered and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return list(zip(ordered, sizes, strict=True))


def _fraction(replica_set: Object, deployment: Object) -> int:
    size, wanted = replicas_of(replica_set), replicas_of(deployment)
    if wanted == 0:
        return -size
    before = int((replica_set["metadata"].get("annotations") or {}).get(MOST) or 0)
    before = before or int((deployment.get("status") or {}).get("replicas") or 0)
    if not before:
        return 0
    return math.floor(size * (wanted + max_surge(deployment)) / before + 0.5) - size
