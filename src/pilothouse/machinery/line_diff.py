"""Unified diffs of lines, as difflib and kube-apiserver's port of it make them, at a bounded cost.

difflib looks for the longest run of lines that both texts share, then on both sides of it for the next. With many
lines that occur often that is cubic: 150 containers of a pod in another order take 17 seconds. So the work is counted,
and what is left when there has been enough of it is shown as replaced. What anybody reads is far below that, and the
same to the letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Final

from pilothouse.machinery.workers import ABANDONED, PATIENCE, checkpoint

_MOST_STEPS: Final = 2_000_000
"""Some 0.3 seconds."""
_MOST_TEXT: Final = 1 << 20
_STEPS_FOR_ONE_COST: Final = 2


def unified_diff(before: Sequence[str], after: Sequence[str]) -> str:
    """The difference of two texts, given as lines with their ends. Of a very long one the beginning."""
    pieces: list[str] = []
    length = 0
    for line in _lines(before, after):
        pieces.append(line)
        length += len(line)
        if length > _MOST_TEXT:
            break
    return "".join(pieces)


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for group in _Matcher(before, after).get_grouped_opcodes():
        (_, first, _, other_first, _), (_, _, last, _, other_last) = group[0], group[-1]
        yield f"@@ -{_range(first, last)} +{_range(other_first, other_last)} @@\n"
        for tag, start, end, other_start, other_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[start:end])
                continue
            yield from (f"-{line}" for line in before[start:end])
            yield from (f"+{line}" for line in after[other_start:other_end])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


class _Matcher(SequenceMatcher[str]):
    """Finds nothing in common any more once it has taken ``_MOST_STEPS``."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        PATIENCE.spend(len(before) + len(after))
        super().__init__(None, before, after)
        found: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]  # documented, though typeshed has it not
        occurrences = (1 + len(found.get(line, ())) for line in before)
        self._steps = [0, *accumulate(occurrences)]
        """What looking at all lines up to each may take."""
        self._left = _MOST_STEPS

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        if ABANDONED:
            checkpoint()
        steps = self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if steps > self._left:
            return Match(alo, blo, 0)
        self._left -= steps
        PATIENCE.spend(steps // _STEPS_FOR_ONE_COST)
        return super().find_longest_match(alo, ahi, blo, bhi)
