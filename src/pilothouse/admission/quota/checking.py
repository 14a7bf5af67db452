"""Whether a request fits into the quotas of its namespace, and what they stand at afterwards.

A quota counts only from the moment its controller has filled in ``status.hard``; it speaks of an object if one of its
names and all of its scopes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pilothouse.admission.quota.amounts import increase, nonzero, only, plus, show
from pilothouse.admission.quota.configuration import Limited
from pilothouse.admission.quota.evaluators import Evaluator, Scope
from pilothouse.admission.quota.scopes import scopes_of
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.core.pod_spec.amounts import Amounts, read_amounts
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import show as show_value
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import ZERO


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota as it stands."""

    name: str
    scopes: list[Scope]
    hard: Amounts
    used: Amounts

    @classmethod
    def read(cls, obj: Object) -> Quota:
        """From the stored object."""
        status = obj.get("status") or {}
        hard, used = read_amounts(status.get("hard")), read_amounts(status.get("used"))
        return cls(obj["metadata"]["name"], scopes_of(obj.get("spec") or {}), hard, used)


def check_request(
    quotas: Sequence[Quota], attributes: Attributes, evaluator: Evaluator, limited: Sequence[Limited]
) -> list[Quota]:
    """The quotas with the request charged to them; raises the refusal."""
    obj = attributes.object or {}
    applying, covered, scopes = _find_applying(quotas, attributes, evaluator, obj)
    usage = evaluator.usage(obj, attributes.namespace)
    negative = sorted(name for name, quantity in usage.items() if quantity < ZERO)
    if negative:
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    deltas = _deltas(quotas, attributes, evaluator, applying, usage)
    if not any(deltas.values()):
        return list(quotas)
    _require_cover(attributes, evaluator, obj, usage, limited, covered, scopes)
    charged = list(quotas)
    for position in applying:
        if deltas[position]:
            charged[position] = _charge(quotas[position], deltas[position], attributes)
    return charged


def _find_applying(
    quotas: Sequence[Quota], attributes: Attributes, evaluator: Evaluator, obj: Object
) -> tuple[list[int], set[str], list[Scope]]:
    """The quotas that speak of an object, the names they restrict, and all scopes it falls under."""
    applying: list[int] = []
    covered: set[str] = set()
    scopes: list[Scope] = []
    for position, quota in enumerate(quotas):
        matched = [scope for scope in quota.scopes if evaluator.in_scope(scope, obj)]
        scopes += matched
        names = evaluator.matching(quota.hard)
        if not names or len(matched) != len(quota.scopes):
            continue
        lacking = evaluator.missing(names, obj)
        if lacking:
            raise forbidden(attributes, f"failed quota: {quota.name}: {lacking}")
        if any(name not in quota.used for name in names):
            why = f"status unknown for quota: {quota.name}, resources: {','.join(sorted(names))}"
            raise forbidden(attributes, why)
        applying.append(position)
        covered.update(names)
    return applying, covered, scopes


def _deltas(
    quotas: Sequence[Quota], attributes: Attributes, evaluator: Evaluator, applying: list[int], usage: Amounts
) -> dict[int, Amounts]:
    """What the request adds to each quota that applies; under -1 what it adds when none does."""
    whole = nonzero(usage)
    old = attributes.old_object
    if attributes.operation != UPDATE:
        return dict.fromkeys(applying, whole) if applying else {-1: whole if attributes.operation == CREATE else {}}
    if old is None:
        why = "unable to get previous usage since prior version of object was not found"
        raise forbidden(attributes, why)
    if not (old.get("metadata") or {}).get("resourceVersion"):
        return dict.fromkeys(applying, whole) if applying else {-1: whole}
    grown = increase(usage, evaluator.usage(old, attributes.namespace))
    if not applying:
        return {-1: grown}
    deltas = {}
    for position in applying:
        spoke_of_old = all(evaluator.in_scope(scope, old) for scope in quotas[position].scopes)
        deltas[position] = grown if spoke_of_old else whole
    return deltas


def _require_cover(
    attributes: Attributes,
    evaluator: Evaluator,
    obj: Object,
    usage: Amounts,
    limited: Sequence[Limited],
    covered: set[str],
    scopes: list[Scope],
) -> None:
    """Refuse what is limited by default and has no quota."""
    if not limited:
        return
    resource = attributes.resource.group_resource
    names = {
        name
        for each in limited
        if each.resource == resource
        for name, quantity in usage.items()
        if quantity > ZERO and any(part in name for part in each.contains)
    }
    if names - covered:
        raise forbidden(attributes, f"insufficient quota to consume: {','.join(sorted(names - covered))}")
    if not evaluator.has_scopes():
        return
    known = {scope.get("scopeName") for scope in scopes}
    wanted = [scope for each in limited for scope in each.scopes if evaluator.in_scope(scope, obj)]
    open_scopes = [scope for scope in wanted if scope.get("scopeName") not in known]
    if open_scopes:
        shown = " ".join(_show_scope(scope) for scope in open_scopes)
        raise errors.generic(f"insufficient quota to match these scopes: [{shown}]")


def _show_scope(scope: dict[str, Any]) -> str:
    values = show_value(list(scope.get("values") or ()))
    return f"{{{scope.get('scopeName', '')} {scope.get('operator', '')} {values}}}"


def _charge(quota: Quota, delta: Amounts, attributes: Attributes) -> Quota:
    requested = only(delta, quota.hard)
    used = plus(quota.used, requested)
    if attributes.subresource != "status":
        exceeded = {name for name in requested if used[name] > quota.hard[name]}
        if exceeded:
            why = (
                f"exceeded quota: {quota.name}, requested: {show(only(requested, exceeded))}, "
                f"used: {show(only(quota.used, exceeded))}, limited: {show(only(quota.hard, exceeded))}"
            )
            raise forbidden(attributes, why)
    return replace(quota, used=used)
