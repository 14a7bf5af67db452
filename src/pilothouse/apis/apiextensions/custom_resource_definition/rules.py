"""Expression rules (``x-kubernetes-validations``) of a definition. The language is loaded with the first rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.apis.apiextensions.schema.traversal import subschemas
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.objects import Object

if TYPE_CHECKING:
    from pilothouse.cel.crd_checks import RuleChecks

Schema = dict[str, Any]
Rules = Callable[[Object, Object | None, list[str]], list[FieldError]]
"""(object, old object, warnings to add to) → errors."""


def has_rules(schema: Schema) -> bool:
    """Whether there is a rule anywhere in a schema."""
    return any(each.get("x-kubernetes-validations") for each in subschemas(schema))


def rule_checks(schema: Schema, old_rules: frozenset[str], *, suppress_cost: bool) -> RuleChecks | None:
    """What checks the rules of a definition's schema; None without any."""
    if not has_rules(schema):
        return None
    from pilothouse.cel.crd_checks import RuleChecks

    return RuleChecks(schema, old_rules, suppress_cost=suppress_cost)


def compile_rules(schema: ObjectSchema) -> Rules | None:
    """The rules that hold for objects; None without any."""
    if not has_rules(schema.source):
        return None
    from pilothouse.cel.crd_rules import prepare_rules

    rules = prepare_rules(schema.source)
    if rules is None:
        return None

    def validate(obj: Object, old: Object | None, warnings: list[str]) -> list[FieldError]:
        return rules.validate(obj, old, None, warnings=warnings)

    return validate


def default_rule_errors(node: Node, value: Any, where: Path, *, resource: bool) -> list[FieldError]:
    """Rules that a default breaks, as a value that stays and as one that is new."""
    if not has_rules(node.source):
        return []
    if value.__class__ is list and node.items is not None and not node.source.get("x-kubernetes-validations"):
        items = node.items
        found = (
            default_rule_errors(items, item, where.index(at), resource=items.embedded) for at, item in enumerate(value)
        )
        return [error for errs in found for error in errs]
    from pilothouse.cel.crd_rules import prepare_rules

    rules = prepare_rules(node.source, resource=resource)
    if rules is None:
        return []
    return rules.validate(value, value, where, ratcheting=False) or rules.validate(value, None, where)
