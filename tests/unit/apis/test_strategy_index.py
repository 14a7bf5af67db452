"""Indexes name classes instead of importing them, so only this test tells at once that one of them is elsewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import pilothouse.apis
from pilothouse.apis.resources import table
from pilothouse.apis.strategy import Strategy

GROUPS = sorted(path.parent.name for path in Path(pilothouse.apis.__path__[0]).glob("*/index.py"))


@pytest.mark.parametrize("group", GROUPS)
def test_every_class_is_there(group: str) -> None:
    known = {row.name for version in table().values() for row in version.resources}
    strategies = import_module(f"pilothouse.apis.{group}.index").STRATEGIES
    assert strategies
    for resource, strategy in strategies.items():
        assert issubclass(strategy, Strategy)
        assert resource in known
