"""Subjects of bindings through rbac.authorization.k8s.io/v1alpha1, which name a version instead of a group."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object

_GROUP: Final = "rbac.authorization.k8s.io"
_OWN: Final = f"{_GROUP}/v1alpha1"
_GROUPS: Final = {"ServiceAccount": "", "User": _GROUP, "Group": _GROUP}


def from_v1alpha1(obj: Object) -> Object:
    """As v1 has it. The user ``*`` meant everybody who is known."""
    return {**obj, "subjects": _each(obj, _to_group)}


def to_v1alpha1(obj: Object) -> Object:
    """As v1alpha1 has it."""
    return {**obj, "subjects": _each(obj, _to_version)}


def _each(obj: Object, convert: Any) -> list[Object] | None:
    subjects = obj.get("subjects")
    return None if subjects is None else [convert(subject) for subject in subjects]


def _to_group(subject: Object) -> Object:
    made = {key: value for key, value in subject.items() if key != "apiVersion"}
    kind = subject.get("kind", "")
    if kind == "User" and subject.get("name") == "*":
        return {**made, "kind": "Group", "name": "system:authenticated", "apiGroup": _GROUP}
    group = _GROUPS[kind] if kind in _GROUPS else _group(subject.get("apiVersion", ""))
    return {**made, "apiGroup": group} if group else made


def _group(version: str) -> str:
    try:
        return parse_group_version(version).group
    except ValueError:
        return ""


def _to_version(subject: Object) -> Object:
    made = {key: value for key, value in subject.items() if key != "apiGroup"}
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind in _GROUPS and group == _GROUPS[kind]:
        return {**made, "apiVersion": _OWN if group else "v1"}
    return {**made, "apiVersion": f"{group}/"} if group else made


_BINDING: Final = Older(from_v1alpha1, to_v1alpha1)
OLDER: dict[tuple[str, str], Older] = {
    ("v1alpha1", "rolebindings"): _BINDING,
    ("v1alpha1", "clusterrolebindings"): _BINDING,
}
