"""The options every write may carry in its query: dry run, field manager, field validation, force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilothouse.apis.metadata import validate_manager
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, not_supported, required
from pilothouse.machinery.gvk import GroupKind

_KINDS: Final = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


@dataclass(slots=True)
class WriteOptions:
    """Read and checked."""

    dry_run: bool = False
    field_manager: str = ""
    validation: str = "Warn"
    applied: bool = False
    """Whether field management was already done, by an apply."""


def read_write_options(request: APIRequest, *, applied: bool = False) -> WriteOptions:
    """The options of a create, update, patch or apply; one 422 for all that is wrong with them."""
    if not request.query and not applied:
        return WriteOptions()
    query = request.options
    errs: list[FieldError] = []
    manager = query.text("fieldManager")
    if applied and not manager:
        errs.append(required(Path("fieldManager"), "is required for apply patch"))
    if request.method == "PATCH" and not applied and query.first("force") is not None:
        errs.append(forbidden(Path("force"), "may not be specified for non-apply patch"))
    if manager:
        validate_manager(manager, Path("fieldManager"), errs)
    dry_run = query.all("dryRun")
    if dry_run and any(value != "All" for value in dry_run):
        errs.append(not_supported(Path("dryRun"), dry_run, ("All",)))
    validation = query.text("fieldValidation")
    if validation not in _VALIDATIONS:
        errs.append(not_supported(Path("fieldValidation"), validation, _VALIDATIONS, plain=True))
    if errs:
        raise errors.invalid(GroupKind("meta.k8s.io", _KINDS[request.method]), "", errs)
    return WriteOptions(bool(dry_run), manager, validation or "Warn", applied)
