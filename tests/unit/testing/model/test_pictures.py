"""The picture of a soak, and when growth is called growth."""

from __future__ import annotations

from xml.etree import ElementTree

from pilothouse.testing.model.pictures import Series, draw
from pilothouse.testing.model.soak import growths


def test_a_picture_has_a_line_for_every_series() -> None:
    series = [Series("memory & more", "MB", [(0.0, 1.0), (1.0, 3.0)]), Series("nothing", "")]
    root = ElementTree.fromstring(draw("<heading>", series))
    lines = root.findall("{*}polyline")
    assert len(lines) == 2
    assert len((lines[0].get("points") or "").split()) == 2
    texts = [text.text or "" for text in root.findall("{*}text")]
    assert "<heading>" in texts and any("memory & more: at most 3.0 MB, 3.0 at the end" in text for text in texts)


def test_growth_without_end_is_told() -> None:
    flat = Series("flat", "", [(float(at), 10.0 + at % 3) for at in range(40)])
    rising = Series("rising", "", [(float(at), float(at)) for at in range(40)])
    assert [told.split()[0] for told in growths([flat, rising, Series("none", "")])] == ["rising"]
