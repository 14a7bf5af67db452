"""Roles and bindings: created by PUT too, named by anything that fits into a path.

Whether the author may grant what a role holds is decided by authorization, not here.
"""

from __future__ import annotations

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.rbac.validation import GROUP, validate_binding, validate_cluster_role, validate_role
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """A generateName prefix must itself be a whole path segment."""
    return names.check_path_segment_name(name)


class _Rbac(Strategy):
    validate_name = staticmethod(name_is_path_segment)
    allow_create_on_update = True
    deletes_unread = False


class _Ruled(_Rbac):
    def canonicalize(self, obj: Object) -> None:
        # An empty list is stored as none at all.
        if not obj.get("rules"):
            obj["rules"] = None


class RoleStrategy(_Ruled):
    """Roles."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_role(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_role(obj)


class ClusterRoleStrategy(_Ruled):
    """Cluster roles."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_cluster_role(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_cluster_role(obj, old)


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


class RoleBindingStrategy(_Rbac):
    """Role bindings."""

    columns = _columns("RoleBinding", "roleBinding")

    def default(self, obj: Object) -> None:
        default_binding(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=True)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=True, old=old)


class ClusterRoleBindingStrategy(_Rbac):
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


STRATEGIES: dict[str, type[Strategy]] = {
    "roles": RoleStrategy,
    "clusterroles": ClusterRoleStrategy,
    "rolebindings": RoleBindingStrategy,
    "clusterrolebindings": ClusterRoleBindingStrategy,
}
