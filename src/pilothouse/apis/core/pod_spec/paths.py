"""File paths inside of volumes: relative where they must be, and never going up."""

from __future__ import annotations

from pilothouse.machinery.field_errors import FieldError, Path, invalid


def has_backsteps(target: str) -> bool:
    """Whether an element of the path is ``..``."""
    return ".." in target and ".." in target.split("/")


def validate_no_backsteps(target: str, path: Path, name: str, errs: list[FieldError]) -> None:
    """A path, absolute or not, without ``..`` elements."""
    if has_backsteps(target):
        errs.append(invalid(path.child(name), target, "must not contain '..'"))


def validate_descending_path(target: str, path: Path, name: str, errs: list[FieldError]) -> None:
    """A relative path without ``..`` elements."""
    if target.startswith("/"):
        errs.append(invalid(path.child(name), target, "must be a relative path"))
    validate_no_backsteps(target, path, name, errs)


def validate_local_path(target: str, path: Path, name: str, errs: list[FieldError]) -> None:
    """A relative path without ``..`` elements whose first name does not start with the dots that the kubelet keeps."""
    validate_descending_path(target, path, name, errs)
    if target.startswith("..") and not target.startswith("../"):
        errs.append(invalid(path.child(name), target, "must not start with '..'"))


def is_local_path(target: str) -> bool:
    """Whether ``validate_local_path`` has nothing to say."""
    return not target.startswith(("/", "..")) and not has_backsteps(target)
