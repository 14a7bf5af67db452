"""Dividing seats among priority levels in proportion to what they want, within their bounds.

Find p such that the sum of clamp(p * target, lower, upper) over all levels is the number of seats there are. The sum
never falls as p grows and is linear between the points where some level reaches a bound, so it is enough to look at
those points and then interpolate. There are a dozen levels and a division every ten seconds: simple beats fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_LEAST_TARGET: Final = 0.001
_CLOSE: Final = 1e-7


class Claim(NamedTuple):
    """What a level wants, the least it is given, and the most it may have."""

    target: float
    lower: float
    upper: float


def divide(seats: int, claims: Sequence[Claim]) -> tuple[list[float], float] | None:
    """What each gets and the proportion of targets that this is; None where the bounds leave no way."""
    targets = [max(claim.target, _LEAST_TARGET) for claim in claims]
    if sum(claim.lower for claim in claims) - seats > _CLOSE or seats - sum(claim.upper for claim in claims) > _CLOSE:
        return None

    def shares(proportion: float) -> list[float]:
        return [
            max(claim.lower, min(claim.upper, proportion * target))
            for claim, target in zip(claims, targets, strict=True)
        ]

    points = sorted(
        bound / target for claim, target in zip(claims, targets, strict=True) for bound in (claim.lower, claim.upper)
    )
    below, least = 0.0, sum(shares(0.0))
    for above in points:
        most = sum(shares(above))
        if most >= seats - _CLOSE:
            part = (seats - least) / (most - least) if most > least else 1.0
            proportion = below + (above - below) * min(1.0, max(0.0, part))
            return shares(proportion), proportion
        below, least = above, most
    return shares(below), below
