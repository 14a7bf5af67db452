"""Authorizers that do not look at the request: always, never, and always for the superusers' group."""

from __future__ import annotations

from typing import Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, PathRule, ResourceRule, RuleReader, Rules
from pilothouse.machinery.user import SYSTEM_MASTERS, User

# The name that stands for the superusers' authorizer at the head of every union.
SUPERUSERS: Final = "kubernetes.io/system-privileged-group"


class AlwaysAllow:
    """Allows everything."""

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Allow."""
        return Decision.ALLOW, ""

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """Everything."""
        return lambda: Rules((ResourceRule(("*",), ("*",), ("*",)),), (PathRule(("*",), ("*",)),))


class AlwaysDeny:
    """Allows nothing, but lets others allow."""

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """No opinion, with a reason."""
        return Decision.NO_OPINION, "Everything is forbidden."

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """Nothing."""
        return Rules


class PrivilegedGroups:
    """Allows everything to members of some groups; always the first of a union, with ``system:masters``."""

    def __init__(self, *groups: str) -> None:
        self._groups = frozenset(groups or (SYSTEM_MASTERS,))

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Allow members, no opinion about others."""
        return self.decide(attributes)

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        """The same without a coroutine: nothing here waits."""
        if self._groups.isdisjoint(attributes.user.groups):
            return Decision.NO_OPINION, ""
        return Decision.ALLOW, ""
