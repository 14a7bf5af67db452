"""Rules of custom resources at work: compiled once per schema, evaluated for every write.

    rules, errors = compile_rules(schema, Path("spec", "versions"))
    if rules is not None:
        errors = rules.validate(obj, old, None, warnings=warnings)

Rules are evaluated outside in. A rule that sees the old value runs only where there is one. An error of a value that an
update did not change becomes a warning. Branches right below the root whose rules do not look back are skipped when the
same content passed before without a word.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import orjson

from pilothouse.cel.crd_checks import check_rules
from pilothouse.cel.crd_compiling import CompiledRule, RuleCompiler
from pilothouse.cel.environment import PER_CALL_LIMIT
from pilothouse.cel.escaping import escape
from pilothouse.cel.metrics import COMPILATION, EVALUATION
from pilothouse.cel.schema_types import Convert, Declarations, Declared
from pilothouse.cel.steps import UNSET, Tracker
from pilothouse.cel.values import NONE, CostLimitExceeded, EvaluationError, Optional
from pilothouse.machinery.field_errors import OMIT_VALUE, FieldError, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.ratcheting import CorrelatedObject, OldItems

COST_BUDGET = 10_000_000
_MAX_MESSAGE = 5 * 1024
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_MESSAGE_OUT_OF_BUDGET = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)
_KEPT_PASSES = 2048
Schema = Mapping[str, Any]


class _Stop(Exception):
    """The budget is spent: nothing more is evaluated."""


class _Run:
    """One validation: its budget and what it found."""

    __slots__ = ("budget", "errs", "warnings")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.errs: list[FieldError] = []
        self.warnings: list[str] = []


class _Ratchet:
    """The correlation of a place: its own, or that of the nearest place above that has one."""

    __slots__ = ("current", "parent")

    def __init__(self, current: CorrelatedObject | None, parent: CorrelatedObject | None) -> None:
        self.current = current
        self.parent = parent

    def forgives(self) -> bool:
        nearest = self.current if self.current is not None else self.parent
        return nearest is not None and nearest.is_unchanged()

    def key(self, name: str) -> _Ratchet:
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return _NO_RATCHET
        return _Ratchet(self.current.key(name), self.current)

    def index(self, position: int) -> _Ratchet:
        if self.current is None:
            return self
        return _Ratchet(self.current.index(position), self.current)


_NO_RATCHET = _Ratchet(None, None)


class _Place:
    """The rules of one place in a schema and of the places below it."""

    __slots__ = ("convert", "every", "items", "looks_back", "properties", "rules", "schema", "type", "values")

    def __init__(self, schema: Schema, convert: Convert | None) -> None:
        self.schema = schema
        self.type: str = schema.get("type") or ""
        self.convert = convert
        self.rules: list[CompiledRule] = []
        self.items: _Place | None = None
        self.values: _Place | None = None
        self.properties: dict[str, _Place] = {}
        self.every: list[_Place] = []
        self.looks_back = False

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.items or self.values or self.properties or self.every)

    def below(self) -> list[_Place]:
        found = [*self.properties.values(), *self.every]
        return [*found, *(place for place in (self.items, self.values) if place is not None)]

    def validate(self, path: Path | None, value: Any, old: Any, seen: Any, ratchet: _Ratchet, run: _Run) -> None:
        """Evaluate the rules on a value; `seen` is the value as expressions see it, if that is known already."""
        if value is None:
            return
        if self.rules:
            if seen is UNSET:
                seen = self.convert(value) if self.convert is not None else value
            started = perf_counter()
            self._evaluate(path, value, old, seen, ratchet, run)
            EVALUATION.observe(perf_counter() - started)
        for place in self.every:
            place.validate(path, value, old, seen, _Ratchet(None, ratchet.parent), run)
        if isinstance(value, list):
            self._validate_items(path, value, old, seen, ratchet, run)
        elif isinstance(value, dict):
            self._validate_fields(path, value, old, seen, ratchet, run)

    def _validate_items(
        self, path: Path | None, value: list[Any], old: Any, seen: Any, ratchet: _Ratchet, run: _Run
    ) -> None:
        if self.items is None:
            return
        old_items = OldItems(self.schema, old)
        at = path if path is not None else Path()
        for position, item in enumerate(value):
            item_seen = seen[position] if seen is not UNSET else UNSET
            self.items.validate(at.index(position), item, old_items.get(item), item_seen, ratchet.index(position), run)

    def _validate_fields(
        self, path: Path | None, value: dict[str, Any], old: Any, seen: Any, ratchet: _Ratchet, run: _Run
    ) -> None:
        old_fields: Mapping[str, Any] = old if isinstance(old, dict) else {}
        if self.values is not None:
            at = path if path is not None else Path()
            for name, item in value.items():
                item_seen = seen[name] if seen is not UNSET else UNSET
                self.values.validate(at.key(name), item, old_fields.get(name), item_seen, ratchet.key(name), run)
        for name, place in self.properties.items():
            if name in value:
                item_seen = seen[name] if seen is not UNSET else UNSET
                at = path.child(name) if path is not None else Path(name)
                place.validate(at, value[name], old_fields.get(name), item_seen, ratchet.key(name), run)

    def _evaluate(self, path: Path | None, value: Any, old: Any, seen: Any, ratchet: _Ratchet, run: _Run) -> None:
        if run.budget <= 0:
            run.errs.append(invalid(path, self.type, _OUT_OF_BUDGET))
            raise _Stop
        bindings: dict[str, Any] = {"self": seen}
        old_seen: Any = UNSET
        for rule in self.rules:
            if rule.error is not None:
                run.errs.append(invalid(path, self.type, f"rule compile error: {rule.error}"))
                continue
            if rule.program is None:
                continue
            if rule.uses_old:
                optional = bool(rule.rule.get("optionalOldSelf"))
                if old is None and not optional:
                    continue
                if old_seen is UNSET and old is not None:
                    old_seen = self.convert(old) if self.convert is not None else old
                if optional:
                    bindings["oldSelf"] = Optional(old_seen) if old is not None else NONE
                else:
                    bindings["oldSelf"] = old_seen
            self._evaluate_rule(rule, path, value, bindings, ratchet, run)

    def _evaluate_rule(
        self, rule: CompiledRule, path: Path | None, value: Any, bindings: dict[str, Any], ratchet: _Ratchet, run: _Run
    ) -> None:
        assert rule.program is not None
        tracker = Tracker(PER_CALL_LIMIT)
        error: EvaluationError | None = None
        passed: Any = False
        try:
            passed = rule.program.run(bindings, tracker)
        except EvaluationError as caught:
            error = caught
        if tracker.cost > run.budget:
            run.errs.append(invalid(path, self.type, _OUT_OF_BUDGET))
            raise _Stop
        run.budget -= tracker.cost
        if error is not None:
            run.errs.append(invalid(path, self.type, _explain(error, rule)))
            if isinstance(error, CostLimitExceeded):
                raise _Stop
        elif passed is not True:
            self._report(rule, path, value, bindings, ratchet, run)

    def _report(
        self, rule: CompiledRule, path: Path | None, value: Any, bindings: dict[str, Any], ratchet: _Ratchet, run: _Run
    ) -> None:
        where = path
        if rule.field_path:
            where = path.child(rule.field_path) if path is not None else Path(rule.field_path)
        forgiven = not rule.uses_old and ratchet.forgives()
        stop, detail = False, None
        if rule.message is not None:
            detail, stop = _evaluate_message(rule, bindings, run)
        if stop:
            error = invalid(where, self.type, detail or "")
        else:
            shown = OMIT_VALUE if self.type in ("object", "array") else value
            error = _error(rule, where, shown, detail or _message_or_default(rule))
        if forgiven:
            run.warnings.append(str(error))
        else:
            run.errs.append(error)
        if stop:
            raise _Stop


def _explain(error: EvaluationError, rule: CompiledRule) -> str:
    name = _rule_name(rule)
    if isinstance(error, CostLimitExceeded):
        return f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
    if str(error).startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {why}: {name}"
    return f"{error} evaluating rule: {name}"


def _rule_name(rule: CompiledRule) -> str:
    text: str = rule.rule.get("message") or rule.rule.get("rule") or ""
    return text.strip()


def _message_or_default(rule: CompiledRule) -> str:
    message: str | None = rule.rule.get("message")
    return message.strip() if message else f"failed rule: {_rule_name(rule)}"


def _evaluate_message(rule: CompiledRule, bindings: dict[str, Any], run: _Run) -> tuple[str | None, bool]:
    """Return the message, or why validation must stop; a message that fails otherwise is left out."""
    assert rule.message is not None
    tracker = Tracker(PER_CALL_LIMIT)
    text: Any = None
    exceeded = False
    try:
        text = rule.message.run(bindings, tracker)
    except CostLimitExceeded:
        exceeded = True
    except EvaluationError:
        pass
    if tracker.cost > run.budget:
        return _MESSAGE_OUT_OF_BUDGET, True
    if exceeded:
        source = orjson.dumps(rule.rule.get("messageExpression")).decode()
        why = f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
        return why, True
    run.budget -= tracker.cost
    message = text.strip() if isinstance(text, str) else ""
    if not message or "\n" in message or len(message.encode("utf-8", "replace")) > _MAX_MESSAGE:
        return None, False
    return message, False


def _error(rule: CompiledRule, path: Path | None, value: Any, detail: str) -> FieldError:
    reason = rule.rule.get("reason")
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(path, value)
    return invalid(path, value, detail)


class Rules:
    """All rules of one schema."""

    def __init__(self, schema: Schema, root: _Place) -> None:
        self._schema = schema
        self._root = root
        self._passed: OrderedDict[bytes, None] = OrderedDict()

    def validate(
        self,
        obj: dict[str, Any],
        old: dict[str, Any] | None,
        path: Path | None = None,
        budget: int = COST_BUDGET,
        *,
        warnings: list[str] | None = None,
        ratcheting: bool = True,
    ) -> list[FieldError]:
        """Return the errors of an object; what an update may keep is added to `warnings`."""
        run = _Run(budget)
        keeps = ratcheting and old is not None
        ratchet = _Ratchet(CorrelatedObject(obj, old, self._schema), None) if keeps else _NO_RATCHET
        root = self._root
        seen: Any = UNSET
        try:
            if root.rules or root.every or root.values is not None:
                root.validate(path, obj, old, UNSET, ratchet, run)
            else:
                for name, place in root.properties.items():
                    if obj.get(name) is not None:
                        old_value = old.get(name) if old is not None else None
                        at = path.child(name) if path is not None else Path(name)
                        self._validate_branch(name, place, at, obj[name], old_value, seen, ratchet.key(name), run)
        except _Stop:
            pass
        if warnings is not None:
            warnings.extend(run.warnings)
        return run.errs

    def _validate_branch(
        self, name: str, place: _Place, path: Path, value: Any, old: Any, seen: Any, ratchet: _Ratchet, run: _Run
    ) -> None:
        if place.looks_back:
            place.validate(path, value, old, seen, ratchet, run)
            return
        key = _digest(name, value)
        if key in self._passed:
            try:  # noqa: SIM105 - a context manager costs more than all the rest
                self._passed.move_to_end(key)
            except KeyError:  # another thread has just dropped it
                pass
            return
        before = len(run.errs) + len(run.warnings)
        place.validate(path, value, old, seen, ratchet, run)
        if len(run.errs) + len(run.warnings) == before:
            self._passed[key] = None
            if len(self._passed) > _KEPT_PASSES:
                self._passed.popitem(last=False)


def _digest(name: str, value: Any) -> bytes:
    content = orjson.dumps(value)
    return hashlib.blake2b(content, digest_size=16, person=name.encode()[:16]).digest()


def prepare_rules(schema: Schema, *, resource: bool = True) -> Rules | None:
    """Compile the rules of a schema that was accepted before; None if it has none."""
    if not _has_rules(schema):
        return None
    structs = Declarations()
    declared = structs.declare(schema, resource=resource)
    root = _build(schema, schema, declared, structs)
    return Rules(schema, root) if root is not None else None


def compile_rules(schema: Schema, path: Path) -> tuple[Rules | None, list[FieldError]]:
    """Check the rules of a schema as a new definition's and compile them: no errors, and they may be used."""
    errs = check_rules(schema, path)
    return (None if errs else prepare_rules(schema)), errs


def _has_rules(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return bool(
        schema.get("x-kubernetes-validations")
        or _has_rules(schema.get("items"))
        or _has_rules(schema.get("additionalProperties"))
        or any(map(_has_rules, (schema.get("properties") or {}).values()))
        or any(map(_has_rules, schema.get("allOf") or ()))
    )


def _build(rules: Schema, schema: Schema, declared: Declared | None, structs: Declarations) -> _Place | None:
    """Compile the rules of one schema for the values of another: the same one, or what its `allOf` adds to."""
    place = _Place(schema, declared.convert if declared is not None else None)
    given = rules.get("x-kubernetes-validations")
    if given and declared is not None:
        started = perf_counter()
        compiler = RuleCompiler(declared, structs, with_costs=False)
        place.rules = [compiler.compile(rule, schema) for rule in given]
        COMPILATION.observe(perf_counter() - started)
    place.items = _build_inner(rules.get("items"), schema.get("items"), declared, structs)
    place.values = _build_inner(
        rules.get("additionalProperties"), schema.get("additionalProperties"), declared, structs
    )
    known = schema.get("properties") or {}
    for name, child in sorted((rules.get("properties") or {}).items()):
        if name in known and _has_rules(child):
            built = _build_property(name, child, known[name], declared, structs)
            if built is not None:
                place.properties[name] = built
    place.every = [
        built
        for part in rules.get("allOf") or ()
        if _has_rules(part) and (built := _build(part, schema, declared, structs)) is not None
    ]
    place.looks_back = any(rule.uses_old for rule in place.rules) or any(part.looks_back for part in place.below())
    return None if place.is_empty else place


def _build_inner(rules: Any, schema: Any, declared: Declared | None, structs: Declarations) -> _Place | None:
    if not isinstance(schema, dict) or not _has_rules(rules):
        return None
    return _build(rules, schema, declared.element if declared is not None else None, structs)


def _build_property(
    name: str, rules: Schema, schema: Schema, declared: Declared | None, structs: Declarations
) -> _Place | None:
    identifier = escape(name)
    if identifier is not None:
        found = declared.fields.get(identifier) if declared is not None else None
    else:
        resource = bool(schema.get("x-kubernetes-embedded-resource"))
        found = structs.declare(schema, resource=resource, name=f"selfType.{name}")
    return _build(rules, schema, found, structs) if found is not None else None
