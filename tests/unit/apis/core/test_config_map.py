"""Config maps."""

from __future__ import annotations

from typing import Any

KEY_WORDS = "a valid config key must consist of alphanumeric characters"


def test_config_map_keys_and_sizes(kind: Any) -> None:
    maps = kind("v1", "configmaps")
    assert maps.create({"data": {"a": "1"}})["data"] == {"a": "1"}
    assert maps.errors({"data": {"a/b": ""}})[0].startswith('data[a/b]: Invalid value: "a/b": ' + KEY_WORDS)
    duplicate = maps.errors({"data": {"a": "1"}, "binaryData": {"a": "MQ=="}})
    assert duplicate == ['data[a]: Invalid value: "a": duplicate of key present in binaryData']
    assert maps.errors({"data": {"a": "x" * 1048577}}) == ["[]: Too long: may not be more than 1048576 bytes"]
    assert maps.errors({"data": {"a": "x" * 1048576}}) == []
    assert maps.row(maps.create({"data": {"a": ""}, "binaryData": {"b": ""}}))[:2] == ["a", 2]


def test_immutable_config_map(kind: Any) -> None:
    maps = kind("v1", "configmaps")
    frozen = maps.create({"data": {"a": "1"}, "immutable": True})
    why = "Forbidden: field is immutable when `immutable` is set"
    assert maps.errors({"data": {"a": "2"}}, frozen) == [f"data: {why}"]
    assert maps.errors({"immutable": False}, frozen) == [f"immutable: {why}"]
    assert maps.errors({"metadata": {"labels": {"x": "y"}}}, frozen) == []
