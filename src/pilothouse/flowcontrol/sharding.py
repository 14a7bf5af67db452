"""Shuffle sharding: every flow gets a hand of queues, so that a flow that fills its own hand shares few with others.

The hash of a flow is read as a number in a mixed radix: the first digit names one of all queues, the next one of those
that are left, and so on. Equal hashes give equal hands in every server.
"""

from __future__ import annotations

import hashlib
import math

MOST_BITS = 60
"""So much of a 64-bit hash can be dealt without preferring some queues over others noticeably."""


def can_deal(queues: int, hand_size: int) -> bool:
    """Whether a hash is long enough to deal such hands."""
    return 0 < hand_size <= queues <= 1 << 26 and math.ceil(math.log2(queues) * hand_size) <= MOST_BITS


def flow_hash(schema: str, distinguisher: str) -> int:
    """A number for a flow, the same in all servers."""
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "little")


def deal(hash_value: int, queues: int, hand_size: int) -> tuple[int, ...]:
    """The queues in a flow's hand, all different."""
    left: list[int] = []
    for dealt in range(hand_size):
        hash_value, place = divmod(hash_value, queues - dealt)
        left.append(place)
    hand: list[int] = []
    for dealt, place in enumerate(left):
        for before in reversed(left[:dealt]):
            if place >= before:
                place += 1
        hand.append(place)
    return tuple(hand)
