"""The contract of authorization, the union of several authorizers, and the words of a refusal.

An authorizer allows, denies, or has no opinion; the union takes the first opinion and refuses without one. A reason
travels with every decision: clients see it behind the refusal, audit sees it always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from pilothouse.authz.attributes import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.metrics import Value
from pilothouse.machinery.user import User


class Decision(Enum):
    """What an authorizer says."""

    DENY = 0
    ALLOW = 1
    NO_OPINION = 2


class AuthorizationFailed(Exception):
    """The authorizer could not decide (a webhook that does not answer). Not a refusal: the client gets a 500.

    ``decision`` is what the failed authorizer falls back to, DENY ends the union at once.
    """

    def __init__(self, message: str, decision: Decision = Decision.NO_OPINION) -> None:
        super().__init__(message)
        self.decision = decision


class NotKnownYet(Exception):
    """What decides is still being read: ``decide`` cannot tell, and ``authorize`` waits until it can."""


class ResourceRule(NamedTuple):
    """What a user may do with resources, for SelfSubjectRulesReview."""

    verbs: Sequence[str]
    groups: Sequence[str] = ()
    resources: Sequence[str] = ()
    names: Sequence[str] = ()


class PathRule(NamedTuple):
    """What a user may do with paths, for SelfSubjectRulesReview."""

    verbs: Sequence[str]
    paths: Sequence[str] = ()


class Rules(NamedTuple):
    """Everything a user may do in a namespace, as far as it is known."""

    resource_rules: tuple[ResourceRule, ...] = ()
    path_rules: tuple[PathRule, ...] = ()
    incomplete: bool = False
    error: str = ""


RuleReader = Callable[[], Rules]
"""Reads what was found of a user's rules when it was made. They may be many, so any thread can call it."""


class Authorizer(Protocol):
    """Decides about attributes."""

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """The decision and its reason; raises AuthorizationFailed."""
        ...


@runtime_checkable
class RuleResolver(Protocol):
    """An authorizer that can also list what a user may do."""

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """The rules that apply to the user in the namespace, still to be read."""
        ...


class Union:
    """Asks named authorizers in order. The names appear in front of the reasons of those without an opinion."""

    def __init__(
        self,
        authorizers: Sequence[tuple[str, Authorizer]],
        counted: Mapping[str, tuple[Value, Value]] | None = None,
    ) -> None:
        """``counted`` has, by name of an authorizer, what to count its permissions and its denials with."""
        names = [name for name, _ in authorizers]
        if len(set(names)) != len(names):
            raise ValueError("authorizers of a union need different names")
        self._authorizers = tuple(authorizers)
        # Those that need not wait, or hardly ever, are asked without a coroutine.
        self._asked = tuple(
            (name, getattr(each, "decide", None), each, (counted or {}).get(name)) for name, each in authorizers
        )

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """The first opinion; without one, all reasons. A failure counts only if nobody allows."""
        failures: list[str] = []
        reasons: list[str] = []
        for name, decide, authorizer, opinions in self._asked:
            try:
                decision, reason = await authorizer.authorize(attributes) if decide is None else decide(attributes)
            except NotKnownYet:
                decision, reason = await authorizer.authorize(attributes)
            except AuthorizationFailed as failure:
                if failure.decision is Decision.DENY:
                    raise
                failures.append(str(failure))
                continue
            if decision is not Decision.NO_OPINION:
                if opinions is not None:
                    opinions[0 if decision is Decision.ALLOW else 1].value += 1
                return decision, reason
            if reason:
                reasons.append(f"{name}: {reason}")
        if failures:
            raise AuthorizationFailed(aggregate(failures))
        return Decision.NO_OPINION, "\n".join(reasons)

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        """The same without a coroutine. Raises ``NotKnownYet`` where somebody would have to wait, and failures."""
        reasons: list[str] = []
        for name, decide, _, opinions in self._asked:
            if decide is None:
                raise NotKnownYet
            decision, reason = decide(attributes)
            if decision is not Decision.NO_OPINION:
                if opinions is not None:
                    opinions[0 if decision is Decision.ALLOW else 1].value += 1
                return decision, reason
            if reason:
                reasons.append(f"{name}: {reason}")
        return Decision.NO_OPINION, "\n".join(reasons)

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """The rules of all authorizers that can list them."""
        readers = [a.rules_for(user, namespace) for _, a in self._authorizers if isinstance(a, RuleResolver)]
        return lambda: _join([read() for read in readers])


def _join(found: Sequence[Rules]) -> Rules:
    failures = [rules.error for rules in found if rules.error]
    return Rules(
        tuple(rule for rules in found for rule in rules.resource_rules),
        tuple(rule for rules in found for rule in rules.path_rules),
        any(rules.incomplete for rules in found),
        aggregate(failures) if failures else "",
    )


def forbidden(attributes: Attributes, reason: str) -> errors.StatusError:
    """The 403 answer to a request that was not allowed."""
    why = escape(describe_refusal(attributes))
    if reason:
        why = f"{why}: {reason}"
    return errors.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)


def describe_refusal(attributes: Attributes) -> str:
    """What the user cannot do, in the words clients look for."""
    who = f"User {quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.resource_request:
        return f"{who} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{who} resource {quote(resource)} in API group {quote(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {quote(attributes.namespace)}"
    return f"{what} at the cluster scope"


def escape(text: str) -> str:
    """The text without what a browser could take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
