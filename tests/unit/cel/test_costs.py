"""Costs are kube-apiserver's numbers: they decide which rules are accepted and which evaluations are stopped."""

import asyncio
import threading
from typing import Any

import pytest

from pilothouse.cel.crd_compiling import CompiledRule, RuleCompiler
from pilothouse.cel.schema_types import Declarations, Declared
from pilothouse.cel.steps import Tracker
from pilothouse.machinery.workers import aside

TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": TEXT,
        "short": {"type": "string", "maxLength": 10},
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "l": {"type": "array", "maxItems": 8, "items": {"type": "integer"}},
        "any": {"type": "array", "items": TEXT},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"field": TEXT}},
        "io": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
    },
}
OBJECT: dict[str, Any] = {
    "s": "Rook takes 👑",
    "short": "abc",
    "n": 5,
    "x": 1,
    "l": [1, 2, 3, 4, 5, 6, 7, 8],
    "any": ["a", "b", "c"],
    "m": {"a": 1, "b": 2},
    "o": {"field": "a"},
    "io": "25%",
    "when": "2011-08-18T19:03:37.010+01:00",
}


def compiled(rule: str) -> tuple[CompiledRule, Declared]:
    structs = Declarations()
    declared = structs.declare(SCHEMA, resource=False)
    assert declared is not None
    result = RuleCompiler(declared, structs, with_costs=True).compile({"rule": rule}, SCHEMA)
    assert result.error is None, result.error
    return result, declared


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        ("self.n == 5", 3),
        ("type(self.n) == int", 4),
        ("double(5) < 10.0", 1),
        ("self.s.startsWith('Rook')", 3),
        ("self.s.matches('^[^0-9]*$')", 8),
        ("size(self.s) == 12", 4),
        ("self.s.replace(' ', 'x') == 'Rookxtakesx👑'", 7),
        ("self.s.split(' ') == ['Rook', 'takes', '👑']", 6),
        ("self.m.all(k, self.m[k] > 0)", 17),
        ("!self.m.exists(k, self.m[k] == 3)", 20),
        ("self.m.exists_one(k, self.m[k] == 2)", 14),
        ("size(self.m.filter(k, self.m[k] > 1)) == 1", 26),
        ("self.m.transformMap(k, v, v + 1).size() == 2", 15),
        ("self.l.exists_one(e, e > 7)", 22),
        ("self.o.?field.orValue('v') == 'a'", 4),
        ("type(self.io) == int ? self.io == 1 : self.io == '25%'", 7),
        ("optional.of('a').optMap(v, v == 'value').hasValue()", 8),
        ("[-3, 1, -5, -2, 4].sortBy(e, -(e * e)) == [-5, 4, -3, -2, 1]", 145),
        ("lists.range(3).sortBy(e, -e) == [2, 1, 0]", 89),
        ("self.n in [1, 5]", 2),
        ("has(self.n)", 1),
    ],
)
def test_run_time(rule: str, cost: int) -> None:
    result, declared = compiled(rule)
    assert result.program is not None and declared.convert is not None
    tracker = Tracker(10**9)
    assert result.program.run({"self": declared.convert(OBJECT)}, tracker) is True
    assert tracker.cost == cost


async def test_an_evaluation_ends_when_nobody_waits_for_it() -> None:
    """Its limit is a number that no evaluation gets to: without a checkpoint it would go on for hours."""
    result, declared = compiled("lists.range(100000).all(a, lists.range(100000).all(b, a + b >= 0))")
    assert result.program is not None and declared.convert is not None
    program, bound = result.program, {"self": declared.convert(OBJECT)}
    begun, ended = threading.Event(), threading.Event()

    def evaluate() -> None:
        begun.set()
        try:
            program.run(bound, Tracker(10**15))
        finally:
            ended.set()

    waiting = asyncio.ensure_future(aside(evaluate))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    assert await asyncio.to_thread(ended.wait, 60)


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        ("self.n == 5", 2),
        ("self.x == 1.0", 2),
        ("self.s == 'a'", 3),
        ("self.s == self.s", 314577),
        ("self.short == self.s", 8),
        ("isQuantity(self.s)", 314575),
        ("isQuantity('200M')", 1),
        ("string(self.n) == self.s", 314578),
        ("bytes(self.s) == b'a'", 314576),
        ("self.s.contains(self.short)", 1258296),
        ("self.l.all(x, x > 0)", 43),
        ("self.l.isSorted()", 10),
        ("self.l.map(x, x * 2).size() == 8", 127),
        ("optional.of('a') != optional.none()", 1844674407370955266),
        ("self.o.?field.orValue('v') == 'a'", 5),
        ("type(self.when) == google.protobuf.Timestamp", 4),
    ],
)
def test_estimates(rule: str, cost: int) -> None:
    assert compiled(rule)[0].max_cost == cost


def test_unbounded_values_cost_more_than_any_limit() -> None:
    assert compiled("self.any.all(x, self.any.all(y, x == y))")[0].max_cost > 10**12
