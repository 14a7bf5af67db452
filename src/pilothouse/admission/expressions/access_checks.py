"""Access checks inside expressions. Evaluation is synchronous and authorizers are not, so an expression that asks what
nobody has answered yet is stopped, the authorizer is awaited, and the expression runs again with the answer.

Answers are kept for one request; every round answers one more question, so the rounds end.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from pilothouse.authz.attributes import Attributes as Question
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision
from pilothouse.cel.library.authorizing import AccessCheck, ResourceCheck
from pilothouse.cel.library.authorizing import Authorizer as AuthorizerValue
from pilothouse.cel.library.authorizing import Decision as DecisionValue
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import fields, labels
from pilothouse.machinery.user import User, service_account_groups, service_account_name
from pilothouse.machinery.workers import attempted
from pilothouse.net.work_turns import SECONDS, request_turns

T = TypeVar("T")


class _Unanswered(Exception):
    """Stops an evaluation that asks something new."""

    def __init__(self, check: AccessCheck) -> None:
        super().__init__()
        self.check = check


class AccessChecks:
    """The authorizer as one request's expressions see it."""

    __slots__ = ("_answers", "_authorizer", "_turn_ends", "_user")

    def __init__(self, authorizer: Authorizer | None, user: User) -> None:
        self._authorizer, self._user = authorizer, user
        self._answers: dict[AccessCheck, DecisionValue] = {}
        self._turn_ends = perf_counter() + SECONDS

    def bindings(self, attributes: Attributes) -> dict[str, Any]:
        """The two variables."""
        resource = attributes.resource
        requested = AccessCheck(
            group=resource.group,
            resource=resource.resource,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        return {
            "authorizer": AuthorizerValue(self._decide, AccessCheck()),
            "authorizer.requestResource": ResourceCheck(self._decide, requested),
        }

    async def run(self, evaluate: Callable[[], T], weight: int = 0) -> T:
        """The result of an evaluation, repeated until all its questions are answered.

        ``weight`` is that of what is done besides evaluating, in bytes. A policy may be asked about each of ten
        thousand params, which waits for nothing: others get their turn in between, however many are asked so much.
        """
        if perf_counter() > self._turn_ends:
            self._turn_ends = await request_turns().begin()
        while True:
            try:
                return await attempted(weight, evaluate)
            except _Unanswered as unanswered:
                self._answers[unanswered.check] = await self._ask(unanswered.check)

    def _decide(self, check: AccessCheck) -> DecisionValue:
        answer = self._answers.get(check)
        if answer is None:
            raise _Unanswered(check)
        return answer

    async def _ask(self, check: AccessCheck) -> DecisionValue:
        if self._authorizer is None:
            return DecisionValue(False)
        try:
            decision, reason = await self._authorizer.authorize(self._question(check))
        except AuthorizationFailed as failure:
            return DecisionValue(False, error=str(failure))
        return DecisionValue(decision is Decision.ALLOW, reason)

    def _question(self, check: AccessCheck) -> Question:
        user = self._user
        if check.user is not None:
            namespace, name = check.user
            groups = (*service_account_groups(namespace), "system:authenticated")
            user = User(service_account_name(namespace, name), groups=groups)
        if check.path:
            return Question(user, check.verb, resource_request=False, path=check.path)
        question = Question(
            user,
            check.verb,
            namespace=check.namespace,
            group=check.group,
            version="*",
            resource=check.resource,
            subresource=check.subresource,
            name=check.name,
        )
        try:
            question.field_selector = fields.parse(check.field_selector).requirements if check.field_selector else ()
        except ValueError as error:
            question.field_selector_error = str(error)
        try:
            question.label_selector = labels.parse(check.label_selector).requirements if check.label_selector else ()
        except ValueError as error:
            question.label_selector_error = str(error)
        return question
