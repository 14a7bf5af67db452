"""Bindings of roles and cluster roles to subjects. The role that is bound never changes."""

from __future__ import annotations

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.rbac.naming import RbacStrategy
from pilothouse.apis.strategy import Column, Context, Doc
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Object

GROUP = "rbac.authorization.k8s.io"
_ROLE_REF = Path("roleRef")
_SUBJECTS = Path("subjects")


def validate_binding(binding: Object, *, namespaced: bool, old: Object | None = None) -> list[FieldError]:
    """Errors of a role binding or cluster role binding. What it grants never changes."""
    errs = ErrorList()
    ref = binding["roleRef"]
    for position, subject in enumerate(binding.get("subjects") or ()):
        _validate_subject(subject, namespaced, _SUBJECTS.index(position), errs)
    changed = old is not None and ref != old["roleRef"]
    _validate_role_ref(ref, ("Role", "ClusterRole") if namespaced else ("ClusterRole",), errs, changed=changed)
    if changed:
        shown = {go: ref.get(name, "") for go, name in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))}
        errs.keep(_ROLE_REF, shown, None)
    return errs.listed()


def _validate_role_ref(ref: Object, kinds: tuple[str, ...], found: ErrorList, *, changed: bool) -> None:
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
        (errs if changed else found.declared).append(required(_ROLE_REF.child("name")))
    # The reference is checked before the subjects by written rules, after them by declared ones.
    found.errors[:0] = errs


def _validate_subject(subject: Object, namespaced: bool, path: Path, errs: ErrorList) -> None:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        errs.declared.append(required(path.child("name")))
    if kind == "ServiceAccount":
        if name:
            errs.errors += (invalid(path.child("name"), name, m) for m in names.check_dns1123_subdomain(name))
        if group:
            errs.errors.append(not_supported(path.child("apiGroup"), group, ("",), plain=True))
        if not namespaced and not subject.get("namespace"):
            errs.errors.append(required(path.child("namespace")))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errs.errors.append(not_supported(path.child("apiGroup"), group, (GROUP,), plain=True))
    else:
        errs.errors.append(not_supported(path.child("kind"), kind, ("ServiceAccount", "User", "Group"), plain=True))


def _role(obj: Object) -> str:
    ref = obj["roleRef"]
    return f"{ref.get('kind', '')}/{ref.get('name', '')}"


def _subjects(obj: Object, kind: str) -> str:
    chosen = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in chosen)
    return ", ".join(s.get("name", "") for s in chosen)


def _columns(kind: str, said: str) -> tuple[Column, ...]:
    return (
        NAME,
        Column("Role", "string", _role, description=Doc(f"rbac.v1.{kind}", "roleRef", " This field is immutable.")),
        AGE,
        Column("Users", "string", lambda o: _subjects(o, "User"), priority=1, description=f"Users in the {said}"),
        Column("Groups", "string", lambda o: _subjects(o, "Group"), priority=1, description=f"Groups in the {said}"),
        Column(
            "ServiceAccounts",
            "string",
            lambda o: _subjects(o, "ServiceAccount"),
            priority=1,
            description=f"ServiceAccounts in the {said}",
        ),
    )


class RoleBindingStrategy(RbacStrategy):
    """Role bindings."""

    columns = _columns("RoleBinding", "roleBinding")

    def default(self, obj: Object) -> None:
        default_binding(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=True)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=True, old=old)


class ClusterRoleBindingStrategy(RbacStrategy):
    """Cluster role bindings."""

    columns = _columns("ClusterRoleBinding", "clusterRoleBinding")

    def default(self, obj: Object) -> None:
        default_binding(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=False, old=old)


def default_binding(binding: Object) -> None:
    """References are to this group unless they say otherwise; so are users and groups."""
    ref = binding["roleRef"]
    if not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP
