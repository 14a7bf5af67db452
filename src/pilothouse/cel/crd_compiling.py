"""Compiles the rules (`x-kubernetes-validations`) at one place of a schema and tells what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pilothouse.cel.crd_field_paths import normalize_field_path
from pilothouse.cel.environment import Environment, Program
from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import CURRENT, base_environment
from pilothouse.cel.planning import InstantiationError
from pilothouse.cel.schema_types import MAX_REQUEST_BYTES, Declarations, Declared
from pilothouse.cel.types import BOOL, STRING, optional_of

Rule = Mapping[str, Any]


class CompiledRule:
    """One rule: its programs, or why there are none."""

    __slots__ = (
        "error", "field_path", "max_cost", "message", "message_cost", "message_error", "program", "rule",
        "uses_old",
    )  # fmt: skip

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.program: Program | None = None
        self.error: str | None = None
        self.max_cost = 0
        self.uses_old = False
        self.message: Program | None = None
        self.message_error: str | None = None
        self.message_cost = 0
        self.field_path = ""


class RuleCompiler:
    """Compiles rules on a declared type; expressions that were accepted before may use all of this release."""

    def __init__(
        self,
        declared: Declared,
        structs: Declarations,
        is_accepted: Callable[[str], bool] = lambda text: True,
        *,
        with_costs: bool,
    ) -> None:
        self._declared = declared
        self._structs = structs
        self._is_accepted = is_accepted
        self._with_costs = with_costs
        self.max_cardinality = MAX_REQUEST_BYTES // (declared.min_size + 1)

    def compile(self, rule: Rule, schema: Mapping[str, Any]) -> CompiledRule:
        result = CompiledRule(rule)
        text = rule.get("rule") or ""
        if not text.strip():
            return result
        optional = bool(rule.get("optionalOldSelf"))
        try:
            program = self._environment(text, optional).compile(text)
        except CompileError as error:
            result.error = f"compilation failed: {error}"
            return result
        if program.type != BOOL:
            result.error = "cel expression must evaluate to a bool"
            return result
        result.uses_old = "oldSelf" in program.names
        try:
            program.plan()
        except InstantiationError as error:
            result.error = f"program instantiation failed: {error}"
            return result
        if self._with_costs:
            result.max_cost = program.estimate(self._declared.size_of)[1]
        result.program = program
        if rule.get("messageExpression"):
            self._compile_message(result, rule["messageExpression"], optional)
        if rule.get("fieldPath"):
            result.field_path = normalize_field_path(rule["fieldPath"], schema) or ""
        return result

    def _compile_message(self, result: CompiledRule, text: str, optional: bool) -> None:
        try:
            program = self._environment(text, optional).compile(text)
        except CompileError as error:
            result.message_error = f"messageExpression compilation failed: {error}"
            return
        if program.type != STRING:
            result.message_error = "messageExpression must evaluate to a string"
            return
        try:
            program.plan()
        except InstantiationError as error:
            result.message_error = f"messageExpression instantiation failed: {error}"
            return
        if self._with_costs:
            result.message_cost = program.estimate(self._declared.size_of)[1]
        result.message = program

    def _environment(self, text: str, optional: bool) -> Environment:
        base = base_environment(CURRENT) if self._is_accepted(text) else base_environment()
        kind = self._declared.type
        return base.extend({"self": kind, "oldSelf": optional_of(kind) if optional else kind}, self._structs)
