"""What names of RBAC objects may be: anything that fits into a path."""

from __future__ import annotations

from pilothouse.apis.strategy import Strategy
from pilothouse.apis.strategy_rules import DeletionRules, UpdateRules
from pilothouse.machinery import names


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """A generateName prefix must itself be a whole path segment."""
    return names.check_path_segment_name(name)


class RbacStrategy(Strategy):
    """What all kinds of the group share: PUT creates them too."""

    validate_name = staticmethod(name_is_path_segment)
    update_rules = UpdateRules(allow_create=True)
    deletion_rules = DeletionRules(deletes_unread=False)
