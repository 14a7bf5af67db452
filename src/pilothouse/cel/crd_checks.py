"""Checks the rules of a definition before it is accepted: they must compile and must not cost too much.

`RuleChecks` is given at the root of a schema; `property`, `additional` and `items` lead to the checks of the places
below, and `errors` tells what is wrong with the rules of a place. Costs of all places add up in the root, which reports
them last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pilothouse.cel.crd_compiling import CompiledRule, RuleCompiler
from pilothouse.cel.escaping import escape
from pilothouse.cel.ranges import MAX
from pilothouse.cel.schema_types import Declarations, Declared
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, internal, invalid
from pilothouse.machinery.go_json import escape_html

RULE_COST_LIMIT = 10_000_000
TOTAL_COST_LIMIT = 100_000_000
_MOST_SHOWN = 4
_NO_TYPE = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert"
    " structural schema to CEL declarations"
)
Schema = Mapping[str, Any]


class _Total:
    """The cost of all rules of a schema, and the rules that cost most."""

    def __init__(self) -> None:
        self.cost = 0
        self.most: list[tuple[Path, int]] = []

    def add(self, path: Path, cost: int) -> None:
        self.cost = min(self.cost + cost, MAX)
        if cost >= TOTAL_COST_LIMIT // 100:
            self.most.append((path, cost))
            self.most.sort(key=lambda entry: -entry[1])
            del self.most[_MOST_SHOWN:]


class RuleChecks:
    """The checks of one place in a schema."""

    def __init__(self, schema: Schema, old_rules: frozenset[str] = frozenset(), *, suppress_cost: bool = False) -> None:
        self._schema = schema
        self._old_rules = old_rules
        self._suppress_cost = suppress_cost
        self._total = _Total()
        self._cardinality: int | None = 1
        self._parent: RuleChecks | None = None
        self._step: tuple[str, str] = ("root", "")
        self._in_scope = bool(schema.get("x-kubernetes-validations"))
        self._declared: Declared | None = None
        self._structs: Declarations | None = None

    def property(self, name: str, schema: Any) -> RuleChecks:
        return self._child(schema, ("property", name))

    def additional(self, schema: Any) -> RuleChecks:
        return self._child(schema, ("values", ""))

    def items(self, schema: Any) -> RuleChecks:
        return self._child(schema, ("items", ""))

    def _child(self, schema: Any, step: tuple[str, str]) -> RuleChecks:
        child = RuleChecks(
            schema if isinstance(schema, dict) else {}, self._old_rules, suppress_cost=self._suppress_cost
        )
        child._total = self._total
        child._parent = self
        child._step = step
        child._in_scope = child._in_scope or self._in_scope
        child._cardinality = self._multiply(_max_elements(self._schema))
        return child

    def _multiply(self, elements: int | None) -> int | None:
        if self._cardinality is None or elements is None:
            return None
        return min(self._cardinality * elements, MAX)

    def _type(self) -> Declared | None:
        """Declare this place: as part of the place above if that is declared, else by itself."""
        if self._declared is not None or not self._in_scope:
            return self._declared
        if self._parent is not None and self._parent._type() is not None:
            self._declared = self._from_parent(self._parent)
        if self._declared is None:
            self._structs = Declarations()
            resource = self._parent is None or bool(self._schema.get("x-kubernetes-embedded-resource"))
            self._declared = self._structs.declare(self._schema, resource=resource)
        return self._declared

    def _from_parent(self, parent: RuleChecks) -> Declared | None:
        above = parent._declared
        assert above is not None
        kind, name = self._step
        if kind == "property":
            identifier = escape(name)
            found = above.fields.get(identifier) if identifier is not None else None
        else:
            found = above.element
        if found is not None:
            self._structs = parent._structs
        return found

    def errors(self, path: Path, uncorrelatable: Path | None) -> list[FieldError]:
        """Return what is wrong with the rules here; `uncorrelatable` names the list above that forgets old items."""
        where = path.child("x-kubernetes-validations")
        declared = self._type()
        if declared is None or self._structs is None:
            return [internal(where, _NO_TYPE)]
        compiler = RuleCompiler(declared, self._structs, self._old_rules.__contains__, with_costs=True)
        errs: list[FieldError] = []
        for position, rule in enumerate(self._schema["x-kubernetes-validations"]):
            compiled = compiler.compile(rule, self._schema)
            at = where.index(position)
            self._check_cost(compiled, compiler.max_cardinality, at, errs)
            self._check_message(compiled, at, errs)
            _check_old(compiled, at, uncorrelatable, errs)
        return errs

    def _check_cost(self, compiled: CompiledRule, unbounded: int, at: Path, errs: list[FieldError]) -> None:
        path = at.child("rule")
        times = self._cardinality if self._cardinality is not None else unbounded
        cost = min(compiled.max_cost * times, MAX)
        if not self._suppress_cost and cost > RULE_COST_LIMIT:
            errs.append(forbidden(path, cost_message("estimated rule cost", cost, RULE_COST_LIMIT)))
        self._total.add(path, cost)
        if compiled.error is not None:
            errs.append(invalid(path, show_rule(compiled.rule), compiled.error))

    def _check_message(self, compiled: CompiledRule, at: Path, errs: list[FieldError]) -> None:
        path = at.child("messageExpression")
        if compiled.message_error is not None:
            errs.append(invalid(path, show_rule(compiled.rule), compiled.message_error))
        elif compiled.message is not None:
            cost = compiled.message_cost
            if not self._suppress_cost and cost > RULE_COST_LIMIT:
                message = cost_message("estimated messageExpression cost", cost, RULE_COST_LIMIT)
                errs.append(forbidden(path, message))
            self._total.add(path, cost)

    def total_cost_errors(self, path: Path) -> list[FieldError]:
        """Return the errors of all rules together, once all places were checked."""
        total = self._total
        if total.cost <= TOTAL_COST_LIMIT:
            return []
        why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        errs = [forbidden(place, why) for place, _ in total.most]
        return [*errs, forbidden(path, cost_message(name, total.cost, TOTAL_COST_LIMIT))]


def _check_old(compiled: CompiledRule, at: Path, uncorrelatable: Path | None, errs: list[FieldError]) -> None:
    rule = compiled.rule
    if compiled.uses_old:
        if uncorrelatable is not None:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            errs.append(invalid(at.child("rule"), rule.get("rule") or "", why))
    elif rule.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        errs.append(invalid(at.child("optionalOldSelf"), rule["optionalOldSelf"], why))


def _max_elements(schema: Schema) -> int | None:
    """How many times more often than its parent a value below this schema may occur; None if without bound."""
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is None:
            return 1
        limit = schema.get("maxProperties")
    elif schema.get("type") == "array":
        limit = schema.get("maxItems")
    else:
        return 1
    return max(limit, 0) if limit is not None else None


def cost_message(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100.0:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and"
        " maxLength where arrays, maps, and strings are declared)"
    )


def show_rule(rule: Schema) -> bytes:
    """A rule as error messages print it."""
    shown = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return escape_html(orjson.dumps(shown))


def check_rules(schema: Schema, path: Path) -> list[FieldError]:
    """Return what is wrong with all rules of a schema that is valid otherwise."""
    root = RuleChecks(schema)
    errs = _check_place(root, schema, path, None)
    return [*errs, *root.total_cost_errors(path)]


def _check_place(checks: RuleChecks, schema: Schema, path: Path, uncorrelatable: Path | None) -> list[FieldError]:
    errs: list[FieldError] = []
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        errs += _check_place(checks.additional(values), values, path.child("additionalProperties"), uncorrelatable)
    for name, child in sorted((schema.get("properties") or {}).items()):
        errs += _check_place(checks.property(name, child), child, path.child("properties").key(name), uncorrelatable)
    items = schema.get("items")
    if isinstance(items, dict):
        below = uncorrelatable
        if below is None and schema.get("x-kubernetes-list-type") != "map":
            below = path
        errs += _check_place(checks.items(items), items, path.child("items"), below)
    if schema.get("x-kubernetes-validations"):
        errs += checks.errors(path, uncorrelatable)
    return errs
