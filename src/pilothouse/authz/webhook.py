"""The Webhook authorizer: asks a service with a ``SubjectAccessReview`` and remembers its answers for a while.

When the service does not answer, the failure policy decides whether the next authorizer is asked or the request is
denied. Questions with very long texts are not remembered: whoever makes them up could fill the memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from pilothouse.authn.webhook_calls import Post, Sleep, WebhookFailed, call
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Decision, RuleReader, Rules
from pilothouse.authz.match_conditions import ConditionFailed, MatchConditions
from pilothouse.authz.metrics import WebhookMetrics
from pilothouse.machinery import fields, labels
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.kept_json import dumps_to_keep
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import weighed

VERSIONS: Final = ("v1", "v1beta1")
MAX_ENTRIES: Final = 8192
MAX_REMEMBERED_TEXT: Final = 10_000
_DECIDING: Final = ("allowed", "denied", "reason")
_LABEL_OPERATORS: Final = {
    labels.EQUALS: "In",
    labels.DOUBLE_EQUALS: "In",
    labels.IN: "In",
    labels.NOT_EQUALS: "NotIn",
    labels.NOT_IN: "NotIn",
    labels.EXISTS: "Exists",
    labels.DOES_NOT_EXIST: "DoesNotExist",
}


class WebhookAuthorizer:
    """Decides as the webhook says."""

    def __init__(
        self,
        post: Post,
        version: str,
        authorized_ttl: float = 300.0,
        unauthorized_ttl: float = 30.0,
        decision_on_error: Decision = Decision.NO_OPINION,
        *,
        name: str = "default",
        conditions: MatchConditions | None = None,
        metrics: WebhookMetrics | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if version not in VERSIONS:
            raise ValueError(
                f'unsupported webhook authorizer version {quote(version)}, supported versions are "v1", "v1beta1"'
            )
        self._post = post
        self._version = version
        self._ttls = {True: authorized_ttl, False: unauthorized_ttl}
        self._decision_on_error = decision_on_error
        self._conditions = conditions
        self._name, self._metrics = name, metrics or WebhookMetrics()
        self._sleep = sleep
        self._clock = clock
        self._answers: dict[bytes, tuple[float, Mapping[str, Any]]] = {}

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """The webhook's decision, from memory if it is fresh; raises AuthorizationFailed."""
        if length := attributes.selectors_length:
            await weighed(length, attributes.read_selectors)
        if self._conditions is not None and not self._is_meant(attributes, self._conditions):
            return Decision.NO_OPINION, ""
        spec = self._spec(attributes)
        key = dumps_to_keep(spec, orjson.OPT_SORT_KEYS)
        known = self._answers.get(key)
        if known is not None and known[0] > self._clock():
            return _read(known[1])
        body = {
            "kind": "SubjectAccessReview",
            "apiVersion": f"authorization.k8s.io/{self._version}",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        try:
            status = await call(self._counted_post, body, self._sleep)
        except WebhookFailed as failure:
            if self._decision_on_error is Decision.NO_OPINION:
                self._metrics.ignored(self._name, "timeout" if failure.timed_out else "error")
            raise AuthorizationFailed(str(failure), self._decision_on_error) from None
        if _text_length(attributes) + len(status.get("reason") or "") < MAX_REMEMBERED_TEXT:
            self._remember(key, {name: status[name] for name in _DECIDING if name in status})
        return _read(status)

    async def _counted_post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        started = time.perf_counter()
        result = "canceled"
        try:
            answer = await self._post(body)
            result = "success"
            return answer
        except WebhookFailed as failure:
            result = "timeout" if failure.timed_out else "error"
            raise
        finally:
            self._metrics.called(self._name, result, time.perf_counter() - started)

    def _is_meant(self, attributes: Attributes, conditions: MatchConditions) -> bool:
        started = time.perf_counter()
        try:
            meant = conditions.matches(attributes, _selectors_of(attributes))
            self._metrics.evaluated(self._name, time.perf_counter() - started, excluded=not meant)
            return meant
        except ConditionFailed as failure:
            self._metrics.evaluated(self._name, time.perf_counter() - started, failed=True)
            raise AuthorizationFailed(str(failure), self._decision_on_error) from None

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """Not known here."""
        return lambda: Rules(incomplete=True, error="webhook authorizer does not support user rule resolution")

    def _remember(self, key: bytes, status: Mapping[str, Any]) -> None:
        ttl = self._ttls[bool(status.get("allowed"))]
        if ttl <= 0:
            return
        self._answers.pop(key, None)
        while len(self._answers) >= MAX_ENTRIES:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock() + ttl, status)

    def _spec(self, attributes: Attributes) -> dict[str, Any]:
        user = attributes.user
        spec: dict[str, Any] = {}
        if attributes.resource_request:
            spec["resourceAttributes"] = _resource_attributes(attributes)
        else:
            spec["nonResourceAttributes"] = _present(path=attributes.path, verb=attributes.verb)
        # Version v1beta1 calls the list of groups "group".
        groups = "groups" if self._version == "v1" else "group"
        extra = {key: list(values) for key, values in user.extra.items()}
        return {**spec, **_present(user=user.name, **{groups: list(user.groups)}, extra=extra, uid=user.uid)}


def _resource_attributes(attributes: Attributes) -> dict[str, Any]:
    described = _present(
        namespace=attributes.namespace,
        verb=attributes.verb,
        group=attributes.group,
        version=attributes.version,
        resource=attributes.resource,
        subresource=attributes.subresource,
        name=attributes.name,
    )
    return {**described, **_selectors_of(attributes)}


def _selectors_of(attributes: Attributes) -> dict[str, Any]:
    by_field = [
        {"key": field, "operator": "In" if operator == fields.EQUALS else "NotIn", "values": [value]}
        for field, operator, value in attributes.field_selector
    ]
    by_label = [
        _present(key=key, operator=_LABEL_OPERATORS[operator], values=list(values))
        for key, operator, values in attributes.label_selector
        if operator in _LABEL_OPERATORS
    ]
    found: dict[str, Any] = {}
    if by_field:
        found["fieldSelector"] = {"requirements": by_field}
    if by_label:
        found["labelSelector"] = {"requirements": by_label}
    return found


def _read(status: Mapping[str, Any]) -> tuple[Decision, str]:
    allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
    if allowed and denied:
        raise AuthorizationFailed("webhook subject access review returned both allow and deny response", Decision.DENY)
    decision = Decision.ALLOW if allowed else Decision.DENY if denied else Decision.NO_OPINION
    return decision, str(status.get("reason") or "")


def _text_length(attributes: Attributes) -> int:
    return sum(
        len(text)
        for text in (
            attributes.namespace,
            attributes.verb,
            attributes.group,
            attributes.version,
            attributes.resource,
            attributes.subresource,
            attributes.name,
            attributes.path,
        )
    )


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}
