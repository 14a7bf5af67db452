"""Recordings are laid out so that differences between them can be read."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

HERE = Path(__file__).parent
_TOOL = HERE.parents[1] / "tools" / "format_recordings.py"


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("format_recordings", _TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


layout = load_tool().layout
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_only_white_space_changes(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, separators=(",", ":"))):
        assert json.loads(layout(text)) == value
        assert layout(layout(text)) == layout(text)


def test_a_field_a_line():
    assert layout('{"a":[1.50,{}],"b":{"c":[]}}') == ('{\n "a": [\n  1.50,\n  {}\n ],\n "b": {\n  "c": []\n }\n}\n')


def test_recordings_are_laid_out():
    recordings = sorted((HERE / "scenarios").rglob("*.json"))
    assert recordings
    compact = [file.name for file in recordings if not file.read_text().startswith('{\n "name": ')]
    assert compact == [], "run tools/format_recordings.py tests/golden/scenarios"
