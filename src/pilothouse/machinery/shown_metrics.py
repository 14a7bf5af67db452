"""How flags want families of metrics shown: with few values of a label, or although they are deprecated.

    --allow-metric-labels=requests_total,code='200,404'

    requests_total{code="200"} 5            requests_total{code="200"} 5
    requests_total{code="500"} 2      →     requests_total{code="unexpected"} 3
    requests_total{code="503"} 1

Works on the text of the few families that are named, so that counting and all other families pay nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pilothouse.machinery.joined_metrics import combine
from pilothouse.machinery.metric_text import LABEL, number_text
from pilothouse.machinery.metrics import Aside, Instrument, reset

UNEXPECTED: Final = "unexpected"
"""Stands for values that are not allowed."""
Allowed = Mapping[str, frozenset[str]]
"""Values by label; a label that is not named may have any."""
_PARTS: Final = ("_bucket", "_sum")


def read_allowed(mapping: Mapping[str, str]) -> dict[str, Allowed]:
    """The labels of each family, of what is given as ``family,label`` and ``value,value``."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in mapping.items():
        family, _, label = key.partition(",")
        found.setdefault(family, {})[label] = frozenset(values.split(","))
    return dict(found)


class Constrained:
    """A family of which values of labels that are not allowed are shown as one."""

    def __init__(self, instrument: Instrument, allowed: Allowed) -> None:
        self.name, self.stability = instrument.name, instrument.stability
        self.joined = getattr(instrument, "joined", "sum")
        self.aside = isinstance(instrument, Aside) and instrument.aside
        self._instrument, self._allowed = instrument, allowed

    def reset(self) -> None:
        """Count from nothing again, where that is meant to be possible."""
        reset(self._instrument)

    def read(self) -> None:
        """Ask now what is to be shown, where that takes a thread."""
        if isinstance(self._instrument, Aside):
            self._instrument.read()

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        sums: dict[str, float] = {}
        for line in self._instrument.lines(native):
            if line.startswith("#"):
                yield line
                continue
            labels, _, value = line.rpartition(" ")
            labels = LABEL.sub(self._constrain, labels)
            sums[labels] = combine(self.joined, sums[labels], float(value)) if labels in sums else float(value)
        for labels, summed in sums.items():
            yield f"{labels} {number_text(summed)}"

    def unexpected(self) -> float:
        """How often something was counted under a value that is not allowed."""
        return sum(self._counts_of_unexpected())

    def _counts_of_unexpected(self) -> Iterator[float]:
        for line in self._instrument.lines():
            if not line.startswith("#") and any(map(self._is_unexpected, LABEL.finditer(line))):
                labels, _, value = line.rpartition(" ")
                if not labels.partition("{")[0].endswith(_PARTS):
                    yield float(value)

    def _constrain(self, pair: re.Match[str]) -> str:
        return f'{pair[1]}="{UNEXPECTED}"' if self._is_unexpected(pair) else pair[0]

    def _is_unexpected(self, pair: re.Match[str]) -> bool:
        return pair[1] in self._allowed and pair[2] not in self._allowed[pair[1]]


class Deprecated:
    """A family that is hidden in this release, unless ``--show-hidden-metrics-for-version`` wants to see it."""

    def __init__(self, instrument: Instrument, since: str) -> None:
        self.name, self.stability = instrument.name, instrument.stability
        self.joined = getattr(instrument, "joined", "sum")
        self._instrument, self._since = instrument, since

    def reset(self) -> None:
        """Count from nothing again, where that is meant to be possible."""
        reset(self._instrument)

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        for line in self._instrument.lines(native):
            yield line.replace("] ", f"] (Deprecated since {self._since}) ", 1) if line.startswith("# HELP") else line
