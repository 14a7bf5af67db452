"""Access reviews through authorization.k8s.io/v1beta1, which call a user's groups ``group``."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.objects import Object


def from_v1beta1(obj: Object) -> Object:
    """As v1 has it."""
    return _renamed(obj, "group", "groups")


def to_v1beta1(obj: Object) -> Object:
    """As v1beta1 has it."""
    return _renamed(obj, "groups", "group")


def _renamed(obj: Object, old: str, new: str) -> Object:
    return {**obj, "spec": {new if name == old else name: value for name, value in obj["spec"].items()}}


_REVIEW: Final = Older(from_v1beta1, to_v1beta1)
OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "subjectaccessreviews"): _REVIEW,
    ("v1beta1", "localsubjectaccessreviews"): _REVIEW,
}
