"""Roles and cluster roles: rules about what may be done.

Whether the author may grant what a role holds is decided by authorization, not here.
"""

from __future__ import annotations

from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.rbac.naming import RbacStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_RULES = Path("rules")
_SELECTORS = Path("aggregationRule", "clusterRoleSelectors")


def validate_role(role: Object) -> list[FieldError]:
    """Errors of a role."""
    errs = ErrorList()
    _validate_rules(role, True, errs)
    return errs.listed()


def validate_cluster_role(role: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a cluster role; an update may keep values of selectors that were wrong before."""
    errs = ErrorList()
    _validate_rules(role, False, errs)
    aggregation = role.get("aggregationRule")
    if aggregation is not None:
        if not aggregation.get("clusterRoleSelectors"):
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errs.errors.append(required(_SELECTORS, why))
        lenient = old is not None and bool(_selector_errors(old, lenient=False))
        errs.errors += _selector_errors(role, lenient=lenient)
    return errs.listed()


def _validate_rules(role: Object, namespaced: bool, errs: ErrorList) -> None:
    for position, rule in enumerate(role.get("rules") or ()):
        urls = rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            errs.declared.append(required(_RULES.index(position).child("verbs")))
        if urls:
            _validate_urls(rule, urls, namespaced, _RULES.index(position).child("nonResourceURLs"), errs)
            continue
        if not rule.get("apiGroups"):
            why = "resource rules must supply at least one api group"
            errs.errors.append(required(_RULES.index(position).child("apiGroups"), why))
        if not rule.get("resources"):
            why = "resource rules must supply at least one resource"
            errs.errors.append(required(_RULES.index(position).child("resources"), why))


def _validate_urls(rule: Object, urls: list[str], namespaced: bool, path: Path, errs: ErrorList) -> None:
    if namespaced:
        errs.errors.append(invalid(path, urls, "namespaced rules cannot apply to non-resource URLs"))
    if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
        errs.errors.append(invalid(path, urls, "rules cannot apply to both regular resources and non-resource URLs"))


def _selector_errors(role: Object, *, lenient: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    for position, selector in enumerate((role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()):
        path = _SELECTORS.index(position)
        errs += labels.validate_object(selector, path, allow_invalid_values=lenient)
        try:
            labels.from_object(selector)
        except labels.SelectorError:
            errs.append(invalid(path, None, "invalid label selector."))
    return errs


class RoleStrategy(RbacStrategy):
    """Roles."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_role(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_role(obj)


class ClusterRoleStrategy(RbacStrategy):
    """Cluster roles."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_cluster_role(obj, old)
