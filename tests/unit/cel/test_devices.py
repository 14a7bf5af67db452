"""Selectors of devices."""

from __future__ import annotations

import pytest

from pilothouse.cel.devices import COST_LIMIT, selector_cost, size_of
from pilothouse.cel.policies import PolicyError

ATTRIBUTE = 'device.attributes["dra.example.com"].name'
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("true", 0),
        ('device.driver == ""', 2),
        ('device.driver == "dra.example.com"', 4),
        (ATTRIBUTE, 4),
        (f'{ATTRIBUTE} == "fish"', 5),
        ('cel.bind(dra, device.attributes["dra.example.com"], dra.name)', 15),
        ('device.capacity["dra.example.com"].name.isGreaterThan(quantity("1Ki"))', 6),
        (f'{ATTRIBUTE}.isGreaterThan(semver("0.0.1"))', 6),
        ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
        ('device.attributes["dra.example.com"].exists_one(x, x == "services")', 133),
        ("device.allowMultipleAllocations", 2),
    ],
)
def test_costs(text: str, cost: int) -> None:
    assert selector_cost(text) == cost


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("?!", "compilation failed: ERROR: <input>:1:1: Syntax error: "),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("device.nope", "compilation failed: ERROR: <input>:1:7: undefined field 'nope'"),
        ("dev.driver == ''", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'dev' (in container '')"),
        (f"{ATTRIBUTE}.exists(x, x == 1)", "compilation failed: "),
    ],
)
def test_refusals(text: str, why: str) -> None:
    with pytest.raises(PolicyError) as refused:
        selector_cost(text)
    assert str(refused.value).startswith(why)


def test_nested_loops_cost_too_much() -> None:
    text = "int('1'.find('[0-9]*')) < 100"
    for name in "abcdefg":
        text = f"{TEN}.all({name}, {text})"
    assert selector_cost(text) > COST_LIMIT


def test_unknown_places_have_no_size() -> None:
    assert size_of(("x",)) is None
    assert size_of(("device", "attributes", "@values", "name")) == (0, 64)
    assert size_of(("device", "capacity", "@values", "name")) is None
