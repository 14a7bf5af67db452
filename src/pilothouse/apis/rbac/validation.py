"""What makes roles and bindings wrong."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.faults import Faults
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
_RULES = Path("rules")
_ROLE_REF = Path("roleRef")
_SUBJECTS = Path("subjects")
_SELECTORS = Path("aggregationRule", "clusterRoleSelectors")


def validate_role(role: Object) -> list[FieldError]:
    """Faults of a role."""
    faults = Faults()
    _validate_rules(role, True, faults)
    return faults.listed()


def validate_cluster_role(role: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a cluster role; an update may keep values of selectors that were wrong before."""
    faults = Faults()
    _validate_rules(role, False, faults)
    aggregation = role.get("aggregationRule")
    if aggregation is not None:
        if not aggregation.get("clusterRoleSelectors"):
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            faults.errors.append(required(_SELECTORS, why))
        lenient = old is not None and bool(_selector_faults(old, lenient=False))
        faults.errors += _selector_faults(role, lenient=lenient)
    return faults.listed()


def _validate_rules(role: Object, namespaced: bool, faults: Faults) -> None:
    for position, rule in enumerate(role.get("rules") or ()):
        urls = rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            faults.declared.append(required(_RULES.index(position).child("verbs")))
        if urls:
            _validate_urls(rule, urls, namespaced, _RULES.index(position).child("nonResourceURLs"), faults)
            continue
        if not rule.get("apiGroups"):
            why = "resource rules must supply at least one api group"
            faults.errors.append(required(_RULES.index(position).child("apiGroups"), why))
        if not rule.get("resources"):
            why = "resource rules must supply at least one resource"
            faults.errors.append(required(_RULES.index(position).child("resources"), why))


def _validate_urls(rule: Object, urls: list[str], namespaced: bool, path: Path, faults: Faults) -> None:
    if namespaced:
        faults.errors.append(invalid(path, urls, "namespaced rules cannot apply to non-resource URLs"))
    if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
        faults.errors.append(invalid(path, urls, "rules cannot apply to both regular resources and non-resource URLs"))


def _selector_faults(role: Object, *, lenient: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    for position, selector in enumerate((role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()):
        path = _SELECTORS.index(position)
        errs += labels.validate_object(selector, path, allow_invalid_values=lenient)
        try:
            labels.from_object(selector)
        except labels.SelectorError:
            errs.append(invalid(path, None, "invalid label selector."))
    return errs


def validate_binding(binding: Object, *, namespaced: bool, old: Object | None = None) -> list[FieldError]:
    """Faults of a role binding or cluster role binding. What it grants never changes."""
    faults = Faults()
    ref = binding["roleRef"]
    for position, subject in enumerate(binding.get("subjects") or ()):
        _validate_subject(subject, namespaced, _SUBJECTS.index(position), faults)
    changed = old is not None and ref != old["roleRef"]
    _validate_role_ref(ref, ("Role", "ClusterRole") if namespaced else ("ClusterRole",), faults, changed=changed)
    if changed:
        shown = {go: ref.get(name, "") for go, name in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))}
        faults.keep(_ROLE_REF, shown, None)
    return faults.listed()


def _validate_role_ref(ref: Object, kinds: tuple[str, ...], faults: Faults, *, changed: bool) -> None:
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    errs: list[FieldError] = []
    if group != GROUP:
        errs.append(not_supported(_ROLE_REF.child("apiGroup"), group, (GROUP,), plain=True))
    if kind not in kinds:
        errs.append(not_supported(_ROLE_REF.child("kind"), kind, kinds, plain=True))
    if name:
        errs += (invalid(_ROLE_REF.child("name"), name, m) for m in names.check_path_segment_name(name))
    else:
        # The declared rules stop at a change, then the written one tells that the name is missing.
        (errs if changed else faults.declared).append(required(_ROLE_REF.child("name")))
    # The reference is checked before the subjects by written rules, after them by declared ones.
    faults.errors[:0] = errs


def _validate_subject(subject: Object, namespaced: bool, path: Path, faults: Faults) -> None:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        faults.declared.append(required(path.child("name")))
    if kind == "ServiceAccount":
        if name:
            faults.errors += (invalid(path.child("name"), name, m) for m in names.check_dns1123_subdomain(name))
        if group:
            faults.errors.append(not_supported(path.child("apiGroup"), group, ("",), plain=True))
        if not namespaced and not subject.get("namespace"):
            faults.errors.append(required(path.child("namespace")))
    elif kind in ("User", "Group"):
        if group != GROUP:
            faults.errors.append(not_supported(path.child("apiGroup"), group, (GROUP,), plain=True))
    else:
        faults.errors.append(not_supported(path.child("kind"), kind, ("ServiceAccount", "User", "Group"), plain=True))
