from __future__ import annotations

import pytest

from pilothouse.machinery.structured import paths


@pytest.mark.parametrize(
    ("text", "step", "shown"),
    [
        ("f:spec", "f:spec", ".spec"),
        ("f:", "f:", "."),
        ("f:a/b.c", "f:a/b.c", ".a/b.c"),
        ('k:{"name":"web"}', 'k:{"name":"web"}', '[name="web"]'),
        ('k:{"protocol": "TCP", "port":80}', 'k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('v:"a"', 'v:"a"', '[="a"]'),
        ("v:true", "v:true", "[=true]"),
        ("v:1.5", "v:1.5", "[=1.5]"),
        ("v:null", "v:null", "[=null]"),
        ("i:03", "i:3", "[3]"),
        ('k:{"a":[1,"x"]}', 'k:{"a":[1,"x"]}', '[a=[1,"x"]]'),
    ],
)
def test_steps(text: str, step: str, shown: str) -> None:
    assert paths.read_step(text) == step
    assert paths.show_step(step) == shown


@pytest.mark.parametrize("text", ["", "f", "name", "k:[]", "k:{", "v:", "i:x", "v:1 2"])
def test_bad_steps(text: str) -> None:
    with pytest.raises(paths.PathError):
        paths.read_step(text)


def test_unknown_kinds_are_for_later_versions() -> None:
    assert paths.read_step("x:what") is None


def test_strings_are_escaped_as_go_does() -> None:
    assert paths.value_step(1.0) == "v:1"
    assert paths.value_step("a<b>&\N{LINE SEPARATOR}") == 'v:"a\\u003cb\\u003e\\u0026\\u2028"'
    assert paths.show_step(paths.value_step("a<b")) == '[="a<b"]'


def test_order() -> None:
    steps = [
        ".", "f:a", "f:b", 'k:{"port":80}', 'k:{"port":80,"proto":"A"}', 'k:{"port":443}', 'k:{"port":"x"}',
        "v:2", "v:10", 'v:"a!"', 'v:"b"', "v:false", "v:true", "v:[1]", 'v:{"a":1}', "v:null", "i:2", "i:10",
    ]  # fmt: skip
    assert sorted(steps, key=paths.order) == steps
