"""Which attacks others wait for longest, beside what they wait for in quiet.

    ATTACK_FIGURES=figures pytest tests/robustness/attacks
    python tests/robustness/attacks/ranking.py figures [more figures ...]

prints a table of the attacks in which one wait in a hundred was for more than five times the server's work that it is
for in quiet, worst first, and how many attacks kept within. Of several runs the median of each attack counts: a single
one meets whatever else the machine has to do. Attacks that were over before a hundred waits are told of apart, since of
those one in a hundred is the longest.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

TIMES = 5
MANY = 100
_WORK = re.compile(r"work before others ([0-9.]+) ms, p99 ([0-9.]+) ms of (\d+)")


@dataclass
class Seen:
    """Milliseconds of work that waits of an attack were for, of each run."""

    usual: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)

    @property
    def p99(self) -> float:
        return statistics.median(self.longest)

    @property
    def is_long(self) -> bool:
        return statistics.median(self.visits) >= MANY


def read(lines: Iterable[str]) -> dict[str, Seen]:
    """What was seen, by attack."""
    found: dict[str, Seen] = defaultdict(Seen)
    for line in lines:
        figures = _WORK.search(line)
        if figures is not None:
            seen = found[line.partition("\t")[0]]
            seen.usual.append(float(figures[1]))
            seen.longest.append(float(figures[2]))
            seen.visits.append(int(figures[3]))
    return found


def table(found: dict[str, Seen]) -> str:
    """The attacks beyond the limit, in Markdown."""
    quiet = found.pop("quiet")
    limit = TIMES * quiet.p99
    lines = [f"quiet: {statistics.median(quiet.usual):.1f} ms, one in a hundred {quiet.p99:.1f} ms", ""]
    for kind, is_long in ((f"at least {MANY} waits", True), ("fewer", False)):
        attacks = {what: seen for what, seen in found.items() if seen.is_long == is_long}
        beyond = sorted(
            (item for item in attacks.items() if item[1].p99 > limit), key=lambda item: item[1].p99, reverse=True
        )
        lines += [f"{kind}: {len(attacks) - len(beyond)} of {len(attacks)} attacks within {limit:.1f} ms", ""]
        lines += ["| attack | usual | one in a hundred | times quiet |", "|---|---|---|---|"]
        for what, seen in beyond:
            times = seen.p99 / quiet.p99
            lines.append(f"| {what} | {statistics.median(seen.usual):.1f} ms | {seen.p99:.1f} ms | {times:.0f} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(read(line for path in sys.argv[1:] for line in Path(path).read_text().splitlines())))
