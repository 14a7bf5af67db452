"""Series of figures over time as a picture: an SVG with one panel above the other, made of text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

_WIDTH: Final = 900
_PANEL: Final = 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 34, 22
_MOST_POINTS: Final = 1000


@dataclass
class Series:
    """One figure, as it was at certain times (seconds)."""

    title: str
    unit: str
    points: list[tuple[float, float]] = field(default_factory=list)

    @property
    def largest(self) -> float:
        """The largest value, 0 where there is none."""
        return max((value for _, value in self.points), default=0.0)


def draw(heading: str, series: Sequence[Series]) -> str:
    """The picture."""
    height = _TOP + len(series) * (_PANEL + _BOTTOM)
    until = max((time for each in series for time, _ in each.points), default=1.0) or 1.0
    panels = [_panel(each, _TOP + at * (_PANEL + _BOTTOM), until) for at, each in enumerate(series)]
    style = "text{font:12px sans-serif}polyline{fill:none;stroke:#1f5fa8;stroke-width:1.5}rect{fill:none;stroke:#bbb}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"><style>{style}</style>'
        f'<text x="{_LEFT}" y="20">{escape(heading)}</text>{"".join(panels)}</svg>\n'
    )


def _panel(series: Series, top: float, until: float) -> str:
    wide, high, largest = _WIDTH - _LEFT - _RIGHT, _PANEL - 30, series.largest or 1.0
    every = max(1, len(series.points) // _MOST_POINTS)
    line = " ".join(
        f"{_LEFT + time / until * wide:.1f},{top + 20 + high * (1 - value / largest):.1f}"
        for time, value in series.points[::every]
    )
    last = series.points[-1][1] if series.points else 0.0
    title = f"{series.title}: at most {series.largest:,.1f} {series.unit}, {last:,.1f} at the end"
    return (
        f'<text x="{_LEFT}" y="{top + 14}">{escape(title)}</text>'
        f'<rect x="{_LEFT}" y="{top + 20}" width="{wide}" height="{high}"/><polyline points="{line}"/>'
        f'<text x="4" y="{top + 30}">{series.largest:,.0f}</text><text x="4" y="{top + 20 + high}">0</text>'
        f'<text x="{_WIDTH - 60}" y="{top + 36 + high}">{until:,.0f} s</text>'
    )
