"""Attribute-based access control: a policy file with one JSON object a line, read at start and when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, PathRule, ResourceRule, RuleReader, Rules
from pilothouse.machinery.user import ALL_AUTHENTICATED, User
from pilothouse.machinery.watched_file import WatchedFile
from pilothouse.machinery.workers import PATIENCE

_VERSION: Final = "abac.authorization.kubernetes.io/v1beta1"


class Policy(NamedTuple):
    """One line of the file."""

    user: str = ""
    group: str = ""
    read_only: bool = False
    namespace: str = ""
    resource: str = ""
    api_group: str = ""
    path: str = ""

    def means(self, user: User) -> bool:
        """Whether the policy is about the user; both the user and the group count if both are given."""
        if self.user and self.user not in ("*", user.name):
            return False
        if self.group and self.group != "*" and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def allows(self, attributes: Attributes) -> bool:
        if self.read_only and not attributes.read_only:
            return False
        if attributes.resource_request:
            return (
                self.namespace in ("*", attributes.namespace)
                and self.resource in ("*", attributes.resource)
                and self.api_group in ("*", attributes.group)
            )
        return _path_matches(self.path, attributes.path)


def parse_policies(content: bytes, path: str) -> tuple[Policy, ...]:
    """Read the file. Raises ``ValueError`` that names the line."""
    policies: list[Policy] = []
    for number, line in enumerate(content.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(b"#"):
            continue
        try:
            policies.append(_read_policy(orjson.loads(stripped)))
        except (ValueError, TypeError) as error:
            shown = line.decode("utf-8", "replace")
            raise ValueError(f"error reading policy file {path}, line {number}: {shown}: {error}") from None
    return tuple(policies)


def _read_policy(data: Any) -> Policy:
    if not isinstance(data, dict):
        raise TypeError("json: cannot unmarshal into Go value of type struct")
    if data.get("apiVersion") == _VERSION and data.get("kind") == "Policy":
        spec = data.get("spec") or {}
        if not isinstance(spec, dict):
            raise TypeError("json: cannot unmarshal into Go struct field Policy.spec of type v1beta1.PolicySpec")
        return _from_v1beta1(spec)
    return _from_unversioned(data)


def _from_v1beta1(spec: dict[str, Any]) -> Policy:
    user, group = _subject(_text(spec, "user"), _text(spec, "group"))
    return Policy(
        user,
        group,
        _flag(spec, "readonly"),
        _text(spec, "namespace"),
        _text(spec, "resource"),
        _text(spec, "apiGroup"),
        _text(spec, "nonResourcePath"),
    )


def _from_unversioned(data: dict[str, Any]) -> Policy:
    """Before policies had versions, what was left out meant everything."""
    user, group = _subject(_text(data, "user"), _text(data, "group"))
    namespace, resource = _text(data, "namespace"), _text(data, "resource")
    return Policy(
        user,
        group if user or group else ALL_AUTHENTICATED,
        _flag(data, "readonly"),
        namespace or "*",
        resource or "*",
        "*",
        "" if namespace or resource else "*",
    )


def _subject(user: str, group: str) -> tuple[str, str]:
    return ("", ALL_AUTHENTICATED) if "*" in (user, group) else (user, group)


class ABACAuthorizer:
    """Allows what some policy allows; ``file.poll()`` re-reads the file."""

    def __init__(self, path: str) -> None:
        self.file = WatchedFile(path, lambda content: parse_policies(content, path))

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Allow or no opinion."""
        for policy in self.file.value:
            if policy.means(attributes.user) and policy.allows(attributes):
                return Decision.ALLOW, ""
        return Decision.NO_OPINION, "No policy matched."

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """The policies about the user in the namespace."""
        return partial(_rules, self.file.value, user, namespace)


def _rules(policies: Sequence[Policy], user: User, namespace: str) -> Rules:
    resources: list[ResourceRule] = []
    paths: list[PathRule] = []
    for policy in policies:
        PATIENCE.spend(1)
        if not policy.means(user) or policy.namespace not in ("*", namespace):
            continue
        verbs = ("get", "list", "watch") if policy.read_only else ("*",)
        if policy.resource:
            resources.append(ResourceRule(verbs, (policy.api_group,), (policy.resource,)))
        if policy.path:
            paths.append(PathRule(verbs, (policy.path,)))
    return Rules(tuple(resources), tuple(paths))


def _path_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _flag(data: dict[str, Any], key: str) -> bool:
    value = data.get(key)
    if not isinstance(value, bool | None):
        raise TypeError(f"json: cannot unmarshal into Go struct field .{key} of type bool")
    return bool(value)


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    value = "" if value is None else value
    if not isinstance(value, str):
        raise TypeError(f"json: cannot unmarshal into Go struct field .{key} of type string")
    return value
