"""Expression rules (``x-kubernetes-validations``) of a definition: where compiling and evaluating them plugs in."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.field_errors import FieldError, Path

Schema = dict[str, Any]


class RulesContext:
    """Checks the rules of a schema as validation walks through it."""

    def __init__(self, schema: Schema, old_rules: frozenset[str], *, suppress_cost: bool = False) -> None:
        self.schema = schema

    def property(self, name: str, schema: Any) -> RulesContext | None:
        """The context of a field."""
        return self

    def additional(self, schema: Any) -> RulesContext | None:
        """The context of a map's values."""
        return self

    def items(self, schema: Any) -> RulesContext | None:
        """The context of a list's items."""
        return self

    def faults(self, path: Path, uncorrelatable: Path | None) -> list[FieldError]:
        """Faults of the rules at this place."""
        return []

    def total_cost_faults(self, path: Path) -> list[FieldError]:
        """Faults of all rules together."""
        return []
