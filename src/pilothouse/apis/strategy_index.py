"""The index of a group: which class is the strategy of which resource.

Classes are named, not imported: a kind's rules take memory and time only where one of its objects is written or shown.
A server that nobody gave a pod has read nothing of how pods are validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilothouse.apis.strategy import Strategy
from pilothouse.machinery.lazy import imported


class StrategyIndex(Mapping[str, type[Strategy]]):
    """The strategies of a group's resources by their names; each is imported when first asked for."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        """``places`` are the classes' names, with their modules' below the package."""
        self._package, self._places = package, places

    def __getitem__(self, resource: str) -> type[Strategy]:
        found: type[Strategy] = imported(f"{self._package}.{self._places[resource]}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
