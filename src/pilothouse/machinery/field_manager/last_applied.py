"""Getting along with client-side apply.

``kubectl apply`` of old keeps the configuration in an annotation. When kubectl applies on the server instead, what the
annotation proves to be kubectl's own is no conflict, and an annotation that is there is kept up to date, so that users
can go back.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.machinery import large_json
from pilothouse.machinery.structured.comparison import compare
from pilothouse.machinery.structured.descriptions import StepError, to_field_set
from pilothouse.machinery.structured.field_sets import FieldSet, difference
from pilothouse.machinery.structured.paths import write_json
from pilothouse.machinery.structured.shapes import Shape
from pilothouse.machinery.structured.validation import SchemaMismatch, validate

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
_MAX_ANNOTATIONS: Final = 256 * 1024


def last_applied(value: dict[str, Any]) -> str:
    """The configuration in the annotation; empty if there is none."""
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def owned_by_annotation(shape: Shape, live: dict[str, Any], version: str) -> FieldSet | None:
    """The fields that were applied from the client side and are still as applied; None if that cannot be told."""
    text = last_applied(live)
    if not text:
        return None
    try:
        applied = large_json.loads(text.encode())
        if not isinstance(applied, dict) or applied.get("apiVersion") != version or not applied.get("kind"):
            return None
        validate(shape, live)
        validate(shape, applied)
        changed = compare(shape, applied, live)
        fields = to_field_set(shape, applied)
    except (orjson.JSONDecodeError, SchemaMismatch, StepError):
        return None
    for gone in (changed.modified, changed.added, changed.removed):
        fields = difference(fields, gone)
    return fields


def refresh(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with its annotation, if it has one, saying what was applied now."""
    if not last_applied(value):
        return value
    metadata = value["metadata"]
    annotations = {**metadata["annotations"], ANNOTATION: _configuration(patch)}
    if sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def _configuration(patch: dict[str, Any]) -> str:
    metadata = patch.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("annotations"), dict):
        annotations = {key: text for key, text in metadata["annotations"].items() if key != ANNOTATION}
        patch = {**patch, "metadata": {**metadata, "annotations": annotations}}
    # Sorted keys, as Go writes maps; then escapes, as it writes strings.
    return write_json(large_json.loads(orjson.dumps(patch, option=orjson.OPT_SORT_KEYS))) + "\n"
