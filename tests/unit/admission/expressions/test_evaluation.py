"""What expressions may spend, and variables that are computed when first read."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.expressions.evaluation import Compiler, ExpressionError, OutOfBudget, Run
from pilothouse.cel.types import BOOL


def compiled(text: str, *variables: tuple[str, str]) -> tuple[Compiler, Any]:
    compiler = Compiler({"variables": [{"name": name, "expression": each} for name, each in variables]})
    return compiler, compiler.compile(text, BOOL)


def test_every_evaluation_is_charged() -> None:
    compiler, program = compiled("object.a == 1 && object.b == 2")
    run = Run({"object": {"a": 1, "b": 2}}, compiler.variables, 1000)
    assert run.evaluate(program) is True
    cost = 1000 - run.budget
    assert cost > 0
    short = Run({"object": {"a": 1, "b": 2}}, compiler.variables, 2 * cost - 1)
    assert short.evaluate(program) is True
    with pytest.raises(OutOfBudget, match="running out of cost budget"):
        short.evaluate(program)


def test_variables_are_charged_once_to_who_reads_them_first() -> None:
    compiler, program = compiled("variables.v", ("v", "[1, 2, 3].all(x, x < 4)"), ("unused", "[1, 2].all(x, x < 4)"))
    run = Run({}, compiler.variables, 1000)
    assert run.evaluate(program) is True
    first = 1000 - run.budget
    assert run.evaluate(program) is True
    assert 1000 - run.budget - first < first


def test_variables_with_errors() -> None:
    compiler, program = compiled("variables.v == 1", ("v", "oops"))
    with pytest.raises(ExpressionError, match='composited variable "v" fails to compile: compilation failed: ERROR'):
        Run({}, compiler.variables, 1000).evaluate(program)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], True),
        (["true", "1 < 2"], True),
        (["true", "false"], False),
        (["object.zz", "false"], False),
        (
            ["object.zz == 1", "true", "object.yy == 1"],
            "[expression 'object.zz == 1' resulted in error: no such key: zz, ",
        ),
    ],
)
def test_conditions(conditions: list[str], expected: bool | str) -> None:
    compiled = Compiler({}).conditions({"matchConditions": [{"expression": each} for each in conditions]})
    found = compiled.evaluate({"object": {}})
    if isinstance(expected, bool):
        assert (found.met, found.error) == (expected, "")
        return
    assert (found.met, found.errs) == (False, 2)
    assert found.error.startswith(expected)


def test_a_false_condition_does_not_save_the_budget() -> None:
    """All are evaluated, so a later one that is too expensive counts though an earlier one is false."""
    expressions = ["false", *["object.text.contains(object.text)"] * 4]
    compiled = Compiler({}).conditions({"matchConditions": [{"expression": each} for each in expressions]})
    found = compiled.evaluate({"object": {"text": "x" * 9000}})
    assert (found.met, found.errs) == (False, 0)
    assert "running out of cost budget" in found.error
