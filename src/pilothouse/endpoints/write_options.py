"""The options every write may carry in its query: dry run, field manager, field validation."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.apis.metadata import validate_manager
from pilothouse.endpoints.input import field_validation, options_kind
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, not_supported
from pilothouse.machinery.gvk import GroupKind


@dataclass(slots=True)
class WriteOptions:
    """Read and checked."""

    dry_run: bool = False
    field_manager: str = ""
    validation: str = "Warn"
    applied: bool = False
    """Whether field management was already done, by an apply."""


def read_write_options(request: APIRequest) -> WriteOptions:
    """The options of a create, update or patch; 422 for values nobody knows."""
    if not request.query:
        return WriteOptions(field_manager="")
    query = request.options
    errs: list[FieldError] = []
    manager = query.text("fieldManager")
    if manager:
        validate_manager(manager, Path("fieldManager"), errs)
    dry_run = query.all("dryRun")
    if dry_run and any(value != "All" for value in dry_run):
        errs.append(not_supported(Path("dryRun"), dry_run, ("All",)))
    if errs:
        raise errors.invalid(GroupKind("meta.k8s.io", options_kind(request)), "", errs)
    return WriteOptions(bool(dry_run), manager, field_validation(request))
