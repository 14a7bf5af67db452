"""What a FlowSchema's rules say about a request. Results are kept by the controller, so these need not be fast.

rule matches = one of its subjects is the user, and one of its resource rules (or non-resource rules) the request
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.objects import Object
from pilothouse.machinery.user import SERVICE_ACCOUNT_PREFIX, User, service_account_name

_ALL: Final = "*"


def matches_rules(rules: Sequence[Object], user: User, info: RequestInfo) -> bool:
    """Whether one of the rules fits."""
    return any(_matches_rule(rule, user, info) for rule in rules)


def _matches_rule(rule: Object, user: User, info: RequestInfo) -> bool:
    if not any(_matches_subject(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource:
        return any(_matches_resource(each, info) for each in rule.get("resourceRules") or ())
    return any(_matches_path(each, info) for each in rule.get("nonResourceRules") or ())


def _matches_subject(subject: Object, user: User) -> bool:
    kind = subject.get("kind")
    if kind == "User":
        name = _part(subject, "user").get("name")
        return name in (_ALL, user.name)
    if kind == "Group":
        name = _part(subject, "group").get("name")
        return name == _ALL or name in user.groups
    if kind == "ServiceAccount":
        account = _part(subject, "serviceAccount")
        namespace, name = account.get("namespace", ""), account.get("name", "")
        if name == _ALL:
            return user.name.startswith(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:")
        return user.name == service_account_name(namespace, name)
    return False


def _part(subject: Object, name: str) -> dict[str, Any]:
    return subject.get(name) or {}


def _matches_resource(rule: Object, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _contains(rule.get("verbs"), info.verb)
        and _contains(rule.get("resources"), resource)
        and _contains(rule.get("apiGroups"), info.group)
    ):
        return False
    if not info.namespace:
        return bool(rule.get("clusterScope"))
    return _contains(rule.get("namespaces"), info.namespace)


def _matches_path(rule: Object, info: RequestInfo) -> bool:
    if not _contains(rule.get("verbs"), info.verb):
        return False
    for path in rule.get("nonResourceURLs") or ():
        if path in (_ALL, info.path):
            return True
        beginning = path.removesuffix("*")
        if info.path.startswith(beginning if beginning.endswith("/") else beginning + "/"):
            return True
    return False


def _contains(values: Sequence[str] | None, wanted: str) -> bool:
    return bool(values) and (values == [_ALL] or wanted in (values or ()))
