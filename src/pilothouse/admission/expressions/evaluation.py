"""Expressions of policies and match conditions: compiled once, evaluated within a budget.

Variables are computed when first read, and charged to the expression that reads them first. Errors of an expression are
its alone; running out of budget ends all of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.cel.environment import PER_CALL_LIMIT, Environment, Program
from pilothouse.cel.kubernetes import CURRENT
from pilothouse.cel.policies import LazyVariables, PolicyError, as_field, compile_expression, policy_environment
from pilothouse.cel.steps import Tracker
from pilothouse.cel.types import BOOL, DYN, Type
from pilothouse.cel.values import EvaluationError
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote

BUDGET: Final = 10_000_000
CONDITIONS_BUDGET: Final = BUDGET // 4
Compiled = Program | str
"""A program, or why there is none."""


class ExpressionError(Exception):
    """An expression that could not be evaluated."""


class OutOfBudget(Exception):
    """All that may be spent is spent."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


class Compiler:
    """Compiles the expressions of one policy, of which the variables come first, or of something without any."""

    def __init__(self, spec: Mapping[str, Any], *, composed: bool = True) -> None:
        self._composed = composed
        self._params = spec.get("paramKind") is not None
        self._types: dict[str, Type] = {}
        self._environments: dict[tuple[bool, bool], Environment] = {}
        self.variables: dict[str, Compiled] = {}
        for variable in spec.get("variables") or ():
            self._add_variable(variable.get("name", ""), variable.get("expression", ""))

    def compile(self, text: str, *wanted: Type, authorizer: bool = True, patches: bool = False) -> Compiled:
        """An expression that sees all variables."""
        known = self._environments.get((authorizer, patches))
        if known is None:
            known = self._environments[authorizer, patches] = self._environment(authorizer, patches)
        return _compile(known, text, wanted)

    def conditions(self, spec: Mapping[str, Any]) -> Conditions:
        """The match conditions."""
        given = spec.get("matchConditions") or ()
        return Conditions([self.compile(each.get("expression", ""), BOOL) for each in given], self.variables)

    def _add_variable(self, name: str, text: str) -> None:
        compiled = self.variables[name] = _compile(self._environment(True, False), text, ())
        self._types[name] = as_field(compiled.type) if isinstance(compiled, Program) else DYN

    def _environment(self, authorizer: bool, patches: bool) -> Environment:
        return policy_environment(
            params=self._params,
            authorizer=authorizer,
            patches=patches,
            variables=dict(self._types) if self._composed else None,
            version=CURRENT,
        )


def _compile(environment: Environment, text: str, wanted: tuple[Type, ...]) -> Compiled:
    try:
        return compile_expression(environment, text, wanted)
    except PolicyError as error:
        return str(error)


class Run:
    """Evaluates expressions that share their variables and a budget."""

    __slots__ = ("_bindings", "_lazily_spent", "budget", "seconds")

    def __init__(self, bindings: dict[str, Any], variables: Mapping[str, Compiled], budget: int) -> None:
        """The bindings are the run's own from here on."""
        compute = {name: self._computation(name, compiled) for name, compiled in variables.items()}
        bindings["variables"] = LazyVariables(compute)
        self._bindings = bindings
        self._lazily_spent = 0
        self.budget = budget
        self.seconds = 0.0
        """What the last expression took."""

    def evaluate(self, compiled: Compiled) -> Any:
        """The value; raises ExpressionError or OutOfBudget."""
        if isinstance(compiled, str):
            self.seconds = 0.0
            raise ExpressionError(f"compilation error: {compiled}")
        tracker = Tracker(PER_CALL_LIMIT)
        err, value = "", None
        started = time.perf_counter()
        try:
            value = compiled.run(self._bindings, tracker)
        except EvaluationError as error:
            err = f"expression '{compiled.text}' resulted in error: {error}"
        self.seconds = time.perf_counter() - started
        self.budget -= self._lazily_spent + tracker.cost
        self._lazily_spent = 0
        if self.budget < 0:
            raise OutOfBudget
        if err:
            raise ExpressionError(err)
        return value

    def _computation(self, name: str, compiled: Compiled) -> Callable[[], Any]:
        def compute() -> Any:
            if isinstance(compiled, str):
                raise EvaluationError(f"composited variable {quote(name)} fails to compile: {compiled}")
            tracker = Tracker(PER_CALL_LIMIT)
            try:
                return compiled.run(self._bindings, tracker)
            except EvaluationError as error:
                raise EvaluationError(f"composited variable {quote(name)} fails to evaluate: {error}") from None
            finally:
                self._lazily_spent += tracker.cost

        return compute


@dataclass(frozen=True, slots=True)
class Meeting:
    """Whether a request meets conditions, or why that cannot be told."""

    met: bool
    error: str = ""
    errs: int = 0
    """How many conditions could not be evaluated."""
    seconds: float = 0.0


class Conditions:
    """Match conditions: all must be true. One that is false settles it, whatever others say; all are evaluated."""

    __slots__ = ("_compiled", "_variables")

    def __init__(self, compiled: Sequence[Compiled], variables: Mapping[str, Compiled]) -> None:
        self._compiled, self._variables = compiled, variables

    def __bool__(self) -> bool:
        return bool(self._compiled)

    def evaluate(self, bindings: dict[str, Any]) -> Meeting:
        """Evaluate all of them."""
        started = time.perf_counter()
        run = Run(bindings, self._variables, CONDITIONS_BUDGET)
        errs: list[str] = []
        met = True
        for condition in self._compiled:
            try:
                met = run.evaluate(condition) is not False and met
            except ExpressionError as err:
                errs.append(str(err))
            except OutOfBudget as spent:
                return Meeting(False, str(spent), 0, time.perf_counter() - started)
        error = aggregate(errs) if met and errs else ""
        return Meeting(met and not errs, error, len(errs), time.perf_counter() - started)
