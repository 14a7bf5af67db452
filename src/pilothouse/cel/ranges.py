"""Ranges of sizes and costs: pairs (least, most) of unsigned 64-bit integers that saturate instead of overflowing."""

from __future__ import annotations

import math

Range = tuple[int, int]
MAX = (1 << 64) - 1
NO_COST: Range = (0, 0)
FIXED_ONE: Range = (1, 1)
UNKNOWN: Range = (0, MAX)
TRAVERSAL = 0.1
REGEX = 0.25


def fixed(value: int) -> Range:
    return value, value


def add(left: Range, right: Range) -> Range:
    return min(left[0] + right[0], MAX), min(left[1] + right[1], MAX)


def times(left: Range, right: Range) -> Range:
    return min(left[0] * right[0], MAX), min(left[1] * right[1], MAX)


def union(left: Range, right: Range) -> Range:
    return min(left[0], right[0]), max(left[1], right[1])


def scale(size: Range, factor: float) -> Range:
    return scale_number(size[0], factor), scale_number(size[1], factor)


def scale_number(size: int, factor: float) -> int:
    value = float(size)
    if value > 0 and factor > 0 and value > float(MAX) / factor:
        return MAX
    product = math.ceil(value * factor)
    return MAX if product >= 1 << 64 else product
