"""How many pods a deployment may have too many, or too few, while it moves from one revision to the next."""

from __future__ import annotations

from pilothouse.controllers.runtime.scaled_values import scaled
from pilothouse.machinery.objects import Object


def replicas_of(obj: Object) -> int:
    """How many replicas are wanted."""
    return int(obj["spec"].get("replicas", 1))


def is_rolling(deployment: Object) -> bool:
    """Whether revisions replace one another step by step."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def max_surge(deployment: Object) -> int:
    """How many more than wanted."""
    return _limits(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """How many fewer than wanted; never more than there are."""
    wanted = replicas_of(deployment)
    if not is_rolling(deployment) or wanted == 0:
        return 0
    return min(_limits(deployment)[1], wanted)


def _limits(deployment: Object) -> tuple[int, int]:
    """Both, of which one is not zero: otherwise nothing could ever move."""
    update = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = replicas_of(deployment)
    surge = scaled(update.get("maxSurge"), wanted, round_up=True)
    unavailable = scaled(update.get("maxUnavailable"), wanted, round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)
