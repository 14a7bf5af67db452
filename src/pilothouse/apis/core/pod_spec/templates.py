"""Validation of pod templates, as workloads embed them."""

from __future__ import annotations

from pilothouse.apis.core.pod_spec.annotations import validate_pod_annotations, validate_profiles_match
from pilothouse.apis.core.pod_spec.claims import validate_template_metadata
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.validation import validate_pod_spec
from pilothouse.apis.metadata import validate_annotations, validate_labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden
from pilothouse.machinery.objects import Object

__all__ = ["validate_pod_template", "validate_template_metadata"]


def validate_pod_template(template: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a template at this path."""
    metadata, spec = template["metadata"], template["spec"]
    annotations = metadata.get("annotations") or {}
    if metadata.get("labels"):
        validate_labels(metadata["labels"], path.child("labels"), errs)
    if annotations:
        validate_annotations(annotations, path.child("annotations"), errs)
        validate_pod_annotations(annotations, spec, path.child("annotations"), errs, options)
    where = path.child("spec")
    validate_pod_spec(spec, None, where, errs, options)
    if annotations:
        validate_profiles_match(annotations, spec, where, errs)
    if spec.get("ephemeralContainers"):
        errs.append(forbidden(where.child("ephemeralContainers"), "ephemeral containers not allowed in pod template"))
