"""All instruments of a process, as flags want them shown."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping

from pilothouse.machinery.metrics import CROWDED, CollectedGauge, Counter, Instrument, Instrumented
from pilothouse.machinery.shown_metrics import Allowed, Constrained, Deprecated


class Registry:
    """Whoever makes a part registers it."""

    def __init__(
        self, disabled: Iterable[str] = (), allowed: Mapping[str, Allowed] | None = None, *, shows_hidden: bool = False
    ) -> None:
        """Families that are ``disabled`` are not shown; of others only the ``allowed`` values of labels may be."""
        self._disabled, self._allowed, self._shows_hidden = frozenset(disabled), allowed or {}, shows_hidden
        self._left_out = Counter("disabled_metrics_total", "[BETA] Families that flags leave out.")
        self._hidden = Counter("hidden_metrics_total", "[BETA] Families that are deprecated and not shown any more.")
        registered = CollectedGauge(
            "registered_metrics_total",
            "[BETA] Families that there are, by how stable they are.",
            ("stability_level", "deprecated_version"),
            self._by_stability,
            "counter",
            joined="most",
        )
        categorized = CollectedGauge(
            "cardinality_enforcement_unexpected_categorizations_total",
            "[ALPHA] What was counted under labels that are not told apart: too many, too long, or not allowed.",
            (),
            lambda: [((), CROWDED.value + sum(each.unexpected() for each in self._constrained()))],
            "counter",
        )
        self._instruments: list[Instrument] = [self._left_out, self._hidden, registered, categorized]

    def register(self, *parts: Instrumented) -> None:
        """Show the instruments of these from now on."""
        for part in parts:
            for each in part.instruments():
                if each.name in self._disabled:
                    self._left_out.labelled().value += 1
                elif isinstance(each, Deprecated) and not self._shows_hidden:
                    self._hidden.labelled().value += 1
                elif each.name in self._allowed:
                    self._instruments.append(Constrained(each, self._allowed[each.name]))
                else:
                    self._instruments.append(each)

    def _constrained(self) -> Iterator[Constrained]:
        return (each for each in self._instruments if isinstance(each, Constrained))

    def _by_stability(self) -> Iterable[tuple[tuple[str, ...], float]]:
        levels = Tally(each.stability for each in self._instruments)
        return [((level, ""), number) for level, number in levels.items()]

    def __iter__(self) -> Iterator[Instrument]:
        return iter(self._instruments)
