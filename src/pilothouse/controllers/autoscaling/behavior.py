"""How fast an autoscaler may act: recommendations are stabilized over a window, changes limited by policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

DOWN_SECONDS: Final = 300
_WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_READY: Final = ("ReadyForNewScale", "recommended size matches current size")

Rules = Mapping[str, Any]


class Decision(NamedTuple):
    """So many replicas, and what is said about it: reason and message."""

    replicas: int
    why: tuple[str, str]


@dataclass(slots=True)
class History:
    """What was recommended and done lately, by a clock that only ever grows."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    downs: list[tuple[float, int]] = field(default_factory=list)

    def recommend(self, replicas: int, now: float, keep: float) -> None:
        """Note a recommendation; older ones than are needed are forgotten."""
        self.recommendations = [each for each in self.recommendations if each[0] >= now - keep]
        self.recommendations.append((now, replicas))

    def scaled(self, before: int, after: int, now: float, behavior: Rules) -> None:
        """Note a change of the number of replicas."""
        name, changes = ("scaleUp", self.ups) if after > before else ("scaleDown", self.downs)
        keep = max((each["periodSeconds"] for each in _policies(behavior.get(name))), default=0)
        changes[:] = [each for each in changes if each[0] >= now - keep]
        changes.append((now, abs(after - before)))


def stabilize(history: History, current: int, desired: int, behavior: Rules | None, now: float) -> Decision:
    """What of the recommendations of the window to follow; the new one is noted."""
    up_window, down_window = _windows(behavior)
    up = min([desired, *(each for at, each in history.recommendations if at > now - up_window)])
    down = max([desired, *(each for at, each in history.recommendations if at > now - down_window)])
    history.recommend(desired, now, max(up_window, down_window))
    if behavior is None:
        return Decision(down, _READY if down == desired else _DOWN_STABILIZED)
    chosen = min(max(current, up), down)
    if chosen == desired:
        return Decision(chosen, _READY)
    return Decision(chosen, _UP_STABILIZED if desired >= current else _DOWN_STABILIZED)


def _windows(behavior: Rules | None) -> tuple[float, float]:
    if behavior is None:
        return 0.0, DOWN_SECONDS
    up, down = ((behavior.get(name) or {}).get("stabilizationWindowSeconds") for name in ("scaleUp", "scaleDown"))
    return up or 0, DOWN_SECONDS if down is None else down


def limit(
    history: History, current: int, desired: int, least: int, most: int, behavior: Rules | None, now: float
) -> Decision:
    """As many replicas as the limits and the policies allow."""
    if behavior is None:
        return _limit_plainly(current, desired, least, most)
    if desired > current:
        fastest = max(current, _up_limit(history, current, behavior.get("scaleUp") or {}, now))
        why = _UP_LIMIT if most > fastest else _TOO_MANY
        if desired > min(most, fastest):
            return Decision(min(most, fastest), why)
    elif desired < current:
        fastest = min(current, _down_limit(history, current, behavior.get("scaleDown") or {}, now))
        why = _DOWN_LIMIT if least < fastest else _TOO_FEW
        if desired < max(least, fastest):
            return Decision(max(least, fastest), why)
    return Decision(desired, _WITHIN)


def _limit_plainly(current: int, desired: int, least: int, most: int) -> Decision:
    fastest = max(2 * current, 4)
    if desired < least:
        return Decision(least, _TOO_FEW)
    if desired > min(most, fastest):
        return Decision(min(most, fastest), _UP_LIMIT if most > fastest else _TOO_MANY)
    return Decision(desired, _WITHIN)


def _up_limit(history: History, current: int, rules: Rules, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    proposed = []
    for policy in _policies(rules):
        start = _at_period_start(history, current, policy, now)
        by_pods = policy["type"] == "Pods"
        proposed.append(start + policy["value"] if by_pods else math.ceil(start * (1 + policy["value"] / 100)))
    choose = min if rules.get("selectPolicy") == "Min" else max
    return choose(proposed, default=current)


def _down_limit(history: History, current: int, rules: Rules, now: float) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    proposed = []
    for policy in _policies(rules):
        start = _at_period_start(history, current, policy, now)
        by_pods = policy["type"] == "Pods"
        proposed.append(start - policy["value"] if by_pods else int(start * (1 - policy["value"] / 100)))
    choose = max if rules.get("selectPolicy") == "Min" else min
    return choose(proposed, default=current)


def _at_period_start(history: History, current: int, policy: Rules, now: float) -> int:
    since = now - policy["periodSeconds"]
    added = sum(change for at, change in history.ups if at > since)
    removed = sum(change for at, change in history.downs if at > since)
    return current - added + removed


def _policies(rules: Rules | None) -> Sequence[Rules]:
    return (rules or {}).get("policies") or ()
