"""Validating policies: what their expressions say of one request and one object of params.

    conditions → all validations → all messages, with what is left to spend → audit annotations, with a new budget

Message expressions are evaluated whatever the validations say: running out of budget there counts against requests that
pass all of them. Evaluation is synchronous and repeats as a whole when an access check has to wait for its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.admission.expressions.evaluation import (
    BUDGET,
    Compiled,
    Compiler,
    ExpressionError,
    Meeting,
    OutOfBudget,
    Run,
)
from pilothouse.admission.policies.inputs import Inputs
from pilothouse.admission.webhooks.hooks import IGNORE
from pilothouse.cel.types import BOOL, NULL, STRING

_LONGEST_MESSAGE: Final = 5 * 1024
INVALID: Final = "Invalid"


@dataclass(frozen=True, slots=True)
class Denial:
    """A validation that says no, or could not be evaluated."""

    position: int
    message: str
    reason: str = ""
    seconds: float = 0.0
    failed: bool = False
    """Whether it could not be evaluated."""


@dataclass(slots=True)
class Verdict:
    """What a policy says."""

    denials: list[Denial] = field(default_factory=list)
    ignored: list[Denial] = field(default_factory=list)
    """Failures that the failure policy passes over."""
    meeting: Meeting | None = None
    """How the conditions went, if there are any."""
    annotations: list[tuple[str, str]] = field(default_factory=list)
    annotation_errors: list[Denial] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Validation:
    program: Compiled
    message_program: Compiled | None
    text: str
    message: str
    reason: str


class Judge:
    """The compiled expressions of a validating policy."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        compiler = Compiler(spec)
        self._variables = compiler.variables
        self._ignores_failure = spec.get("failurePolicy") == IGNORE
        self._conditions = compiler.conditions(spec)
        self._validations = [_read_validation(compiler, each) for each in spec.get("validations") or ()]
        self._has_messages = any(each.message_program is not None for each in self._validations)
        self._annotations = [
            (each.get("key", ""), compiler.compile(each.get("valueExpression", ""), STRING, NULL))
            for each in spec.get("auditAnnotations") or ()
        ]

    def judge(self, inputs: Inputs) -> Verdict:
        """Evaluate everything; what fails counts as the failure policy has it."""
        meeting = None
        if self._conditions:
            meeting = self._conditions.evaluate(inputs.bindings(namespace=False))
            if not meeting.met:
                verdict = Verdict(meeting=meeting)
                if meeting.error and not self._ignores_failure:
                    self._fail(verdict, 0, meeting.error)
                return verdict
        verdict = Verdict(meeting=meeting)
        try:
            self._validate(inputs, verdict)
            self._annotate(inputs, verdict)
        except OutOfBudget as spent:
            verdict = Verdict(meeting=meeting)
            self._fail(verdict, 0, str(spent))
        return verdict

    def _fail(self, verdict: Verdict, position: int, message: str, seconds: float = 0.0) -> None:
        into = verdict.ignored if self._ignores_failure else verdict.denials
        into.append(Denial(position, message, "", seconds, failed=True))

    def _validate(self, inputs: Inputs, verdict: Verdict) -> None:
        run = Run(inputs.bindings(), self._variables, BUDGET)
        results: list[tuple[Any, float]] = []
        for validation in self._validations:
            try:
                result = run.evaluate(validation.program)
            except ExpressionError as error:
                result = error
            results.append((result, run.seconds))
        messages, spent = self._messages(inputs, run.budget)
        for position, (validation, (result, seconds)) in enumerate(zip(self._validations, results, strict=True)):
            if isinstance(result, ExpressionError):
                self._fail(verdict, position, str(result), seconds)
            elif spent:
                self._fail(verdict, position, f"failed messageExpression: {spent}", seconds)
            elif result is not True:
                message = messages[position] or validation.message or f"failed expression: {validation.text}"
                verdict.denials.append(Denial(position, message, validation.reason, seconds))

    def _messages(self, inputs: Inputs, budget: int) -> tuple[list[str], str]:
        """What message expressions give, empty where that is of no use; and why none of them counts."""
        if not self._has_messages:
            return [""] * len(self._validations), ""
        run = Run(inputs.bindings(access=False), self._variables, budget)
        messages = []
        for validation in self._validations:
            value: Any = ""
            if validation.message_program is not None:
                try:
                    value = run.evaluate(validation.message_program)
                except ExpressionError:
                    value = ""
                except OutOfBudget as spent:
                    return [], str(spent)
            messages.append(_usable(value))
        return messages, ""

    def _annotate(self, inputs: Inputs, verdict: Verdict) -> None:
        if not self._annotations:
            return
        run = Run(inputs.bindings(access=False), self._variables, BUDGET)
        for key, program in self._annotations:
            try:
                value = run.evaluate(program)
            except ExpressionError as error:
                if not self._ignores_failure:
                    verdict.annotation_errors.append(Denial(0, str(error), "", run.seconds, failed=True))
                continue
            if isinstance(value, str) and value.strip():
                verdict.annotations.append((key, value.strip()))


def _read_validation(compiler: Compiler, raw: dict[str, Any]) -> _Validation:
    message = raw.get("messageExpression")
    text = raw.get("expression", "")
    return _Validation(
        program=compiler.compile(text, BOOL),
        message_program=compiler.compile(message, STRING, authorizer=False) if message else None,
        text=text.strip(),
        message=(raw.get("message") or "").strip(),
        reason=raw.get("reason") or INVALID,
    )


def _usable(value: Any) -> str:
    """A message of one line that is not too long; empty for any other."""
    if not isinstance(value, str):
        return ""
    value = value.strip()
    return "" if "\n" in value or len(value.encode()) > _LONGEST_MESSAGE else value
