"""The audit policy: how much of which requests is written down, and at which stages.

Rules are tried in order and the first that matches decides; a request that none matches is not audited. Verdicts are
remembered by what rules can tell requests apart by, so the usual request costs one dictionary lookup.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.shapes import Struct, Text, unknown_fields, without_nulls
from pilothouse.machinery.user import User
from pilothouse.machinery.yaml_codec import load

logger = logging.getLogger(__name__)
NONE: Final = 0
METADATA: Final = 1
REQUEST: Final = 2
REQUEST_RESPONSE: Final = 3
LEVELS: Final = {"None": NONE, "Metadata": METADATA, "Request": REQUEST, "RequestResponse": REQUEST_RESPONSE}
LEVEL_NAMES: Final = tuple(LEVELS)

REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final = (REQUEST_RECEIVED, RESPONSE_STARTED, RESPONSE_COMPLETE, PANIC)

_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 1024
"""Anybody may ask for a path of a megabyte, and for another one each time."""
_RULE: Final = {
    "level": Text("Level"),
    "users": [str],
    "userGroups": [str],
    "verbs": [str],
    "namespaces": [str],
    "resources": [Struct("GroupResources", {"group": str, "resources": [str], "resourceNames": [str]})],
    "nonResourceURLs": [str],
    "omitStages": [Text("Stage")],
    "omitManagedFields": bool,
}
_SHAPE: Final = Struct(
    "Policy",
    {
        "apiVersion": str,
        "kind": str,
        "omitStages": [Text("Stage")],
        "omitManagedFields": bool,
        "rules": [Struct("PolicyRule", _RULE)],
    },
)
_NOBODY: Final = User("")


class Verdict(NamedTuple):
    """What to write down about a request."""

    level: int
    omitted: frozenset[str] = frozenset()
    omit_managed_fields: bool = False
    static: Verdict | None = None
    """What the policy of the flags says, where registered sinks want more."""


class _Resources(NamedTuple):
    group: str
    resources: tuple[str, ...]
    names: frozenset[str]

    def matches(self, info: RequestInfo) -> bool:
        if self.group not in ("*", info.group):
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        subresource = info.subresource
        combined = f"{info.resource}/{subresource}" if subresource else info.resource
        return any(
            wanted in (combined, "*")
            or (subresource and wanted == f"*/{subresource}")
            or (wanted.endswith("/*") and wanted[:-2] == info.resource)
            for wanted in self.resources
        )


class _Rule(NamedTuple):
    verdict: Verdict
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    namespaces: frozenset[str]
    resources: tuple[_Resources, ...]
    paths: tuple[str, ...]

    @property
    def is_about_resources(self) -> bool | None:
        """Whether it means requests for resources or for other paths; None for both."""
        if self.namespaces or self.resources:
            return True
        return False if self.paths else None

    def matches(self, user: User, info: RequestInfo) -> bool:
        if self.users and user.name not in self.users:
            return False
        if self.groups and self.groups.isdisjoint(user.groups):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return info.is_resource and self._matches_resource(info)
        if self.paths:
            return not info.is_resource and any(path_matches(info.path, wanted) for wanted in self.paths)
        return True

    def _matches_resource(self, info: RequestInfo) -> bool:
        if self.namespaces and info.namespace not in self.namespaces:
            return False
        return not self.resources or any(resources.matches(info) for resources in self.resources)


def path_matches(path: str, wanted: str) -> bool:
    """Whether a path is meant: exactly, or by a pattern that ends with an asterisk."""
    return wanted in ("*", path) or (wanted.endswith("*") and path.startswith(wanted.rstrip("*")))


class _Rules:
    """Rules by whom they are about: of twenty thousand, few are about one user."""

    def __init__(self, rules: Iterable[tuple[int, _Rule]]) -> None:
        self._of_anybody: list[tuple[int, _Rule]] = []
        self._of_users: dict[str, list[tuple[int, _Rule]]] = {}
        self._of_groups: dict[str, list[tuple[int, _Rule]]] = {}
        for numbered in rules:
            for filed, names in ((self._of_users, numbered[1].users), (self._of_groups, numbered[1].groups)):
                if names:
                    for name in names:
                        filed.setdefault(name, []).append(numbered)
                    break
            else:
                self._of_anybody.append(numbered)

    def first(self, user: User, info: RequestInfo) -> tuple[int, _Rule] | None:
        """The first rule that means a request, with its number."""
        lists = [self._of_anybody, self._of_users.get(user.name, [])]
        lists += (self._of_groups[group] for group in user.groups if group in self._of_groups)
        found = (next((each for each in rules if each[1].matches(user, info)), None) for rules in lists)
        return min((each for each in found if each is not None), key=itemgetter(0), default=None)


class Policy:
    """Decides about requests."""

    def __init__(self, rules: Sequence[_Rule], default: Verdict) -> None:
        numbered = list(enumerate(rules))
        self._of_resources = _Rules(each for each in numbered if each[1].is_about_resources is not False)
        self._of_paths = _Rules(each for each in numbered if not each[1].is_about_resources)
        self._default = default
        self._by_name = any(resources.names for rule in rules for resources in rule.resources)
        self._verdicts: dict[tuple[Any, ...], Verdict] = {}

    def judge(self, user: User | None, info: RequestInfo) -> Verdict:
        """What to write down about a request; ``user`` is None where nobody could be authenticated."""
        who = _NOBODY if user is None else user
        where: tuple[str, ...] = (info.path,)
        if info.is_resource:
            name = info.name if self._by_name else ""
            where = (info.namespace, info.group, info.resource, info.subresource, name)
        key = (who.name, who.groups, info.verb, where)
        known = self._verdicts.get(key)
        if known is None:
            found = (self._of_resources if info.is_resource else self._of_paths).first(who, info)
            known = self._default if found is None else found[1].verdict
            if len(info.path) <= _LONGEST_REMEMBERED:
                if len(self._verdicts) >= _REMEMBERED:
                    self._verdicts.clear()
                self._verdicts[key] = known
        return known


def parse_policy(data: bytes) -> Policy:
    """Read a policy file. Raises ``ValueError``."""
    document = load(data)
    if not isinstance(document, dict):
        raise ValueError("failed decoding: the policy is not an object")
    if document.get("kind") != "Policy" or document.get("apiVersion") != "audit.k8s.io/v1":
        gvk = f"{document.get('apiVersion') or ''}, Kind={document.get('kind') or ''}"
        raise ValueError(f"unknown group version field {gvk} in policy")
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ValueError as error:
        raise ValueError(f"failed decoding: {error}") from None
    if unknown:
        logger.warning("the audit policy has unknown fields, which are ignored: %s", ", ".join(unknown))
    document = without_nulls(document, _SHAPE)
    entries = document.get("rules") or ()
    stages = _texts(document, "omitStages")
    errs = _stage_errors(stages, Path("omitStages"))
    for number, entry in enumerate(entries):
        errs += _rule_errors(entry, Path("rules").index(number))
    if errs:
        raise ValueError(aggregate(str(err) for err in errs))
    if not entries:
        raise ValueError("loaded illegal policy with 0 rules")
    default = Verdict(NONE, frozenset(stages), bool(document.get("omitManagedFields")))
    return Policy([_rule(entry, default) for entry in entries], default)


def _rule(entry: Mapping[str, Any], default: Verdict) -> _Rule:
    omits = entry.get("omitManagedFields")
    verdict = Verdict(
        LEVELS[entry["level"]],
        # Stages left out for the whole policy are left out for its rules too.
        default.omitted | frozenset(_texts(entry, "omitStages")),
        default.omit_managed_fields if omits is None else bool(omits),
    )
    return _Rule(
        verdict,
        frozenset(_texts(entry, "users")),
        frozenset(_texts(entry, "userGroups")),
        frozenset(_texts(entry, "verbs")),
        frozenset(_texts(entry, "namespaces")),
        tuple(
            _Resources(
                str(each.get("group") or ""), tuple(_texts(each, "resources")), frozenset(_texts(each, "resourceNames"))
            )
            for each in entry.get("resources") or ()
        ),
        tuple(_texts(entry, "nonResourceURLs")),
    )


def _texts(entry: Mapping[str, Any], name: str) -> list[str]:
    values: list[str] = entry.get(name) or []
    return values


def _rule_errors(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    level = rule.get("level") or ""
    errs: list[FieldError] = []
    if not level:
        errs.append(required(path.child("level"), ""))
    elif level not in LEVELS:
        errs.append(not_supported(path.child("level"), level, LEVEL_NAMES))
    paths, resources = _texts(rule, "nonResourceURLs"), rule.get("resources") or ()
    where = path.child("nonResourceURLs")
    for number, url in enumerate(paths):
        if url == "*":
            continue
        if not url.startswith("/"):
            detail = "non-resource URL rules must begin with a '/' character"
            errs.append(invalid(where.index(number), url, detail))
        if "*" in url[:-1]:
            detail = "non-resource URL wildcards '*' must be the final character of the rule"
            errs.append(invalid(where.index(number), url, detail))
    for each in resources:
        errs += _resource_errors(each, path.child("resources"))
    errs += _stage_errors(_texts(rule, "omitStages"), path.child("omitStages"))
    if paths and (resources or _texts(rule, "namespaces")):
        errs.append(invalid(where, paths, "rules cannot apply to both regular resources and non-resource URLs"))
    return errs


def _resource_errors(entry: Mapping[str, Any], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    group = str(entry.get("group") or "")
    if group not in ("", "*"):
        wrong = check_dns1123_subdomain(group)
        if wrong:
            errs.append(invalid(path.child("group"), group, ",".join(wrong)))
    names = _texts(entry, "resourceNames")
    if names and not _texts(entry, "resources"):
        errs.append(invalid(path.child("resourceNames"), names, "using resourceNames requires at least one resource"))
    return errs


def _stage_errors(stages: Sequence[str], path: Path) -> list[FieldError]:
    detail = f"allowed stages are {','.join(STAGES)}"
    return [invalid(path.index(number), stage, detail) for number, stage in enumerate(stages) if stage not in STAGES]
