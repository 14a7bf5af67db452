"""What happens to a changed object before it replaces the stored one.

1. the namespace of object and request agree; generation is the old one
2. strategy.prepare_for_update puts back what updaters may not change (and may count the generation up)
3. system metadata is kept: uid, creationTimestamp, deletion marks
4. metadata, then strategy.validate_update; every error in one 422
5. strategy.warnings_on_update, strategy.canonicalize
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.apis.metadata import validate_metadata, validate_metadata_update, validate_prefix
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.validation import standard_finalizers
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import MOST_MADE, FieldError, bounded, listed
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import Emptied, has_emptied
from pilothouse.machinery.workers import LONG
from pilothouse.registry.rest.before_create import ensure_namespace
from pilothouse.registry.rest.given_values import restate


def before_update(resource: Resource, strategy: Strategy, ctx: Context, obj: Object, old: Object) -> None:
    """Make the object ready to replace ``old``, or raise the Status that refuses it."""
    metadata, old_metadata = obj["metadata"], old["metadata"]
    ensure_namespace(resource, ctx, metadata)
    if "generation" in old_metadata:
        metadata["generation"] = old_metadata["generation"]
    else:
        metadata.pop("generation", None)
    if not ctx.dry_run:
        metadata.pop("selfLink", None)
    strategy.prepare_for_update(ctx, obj, old)
    metadata = obj["metadata"]
    counting, judging = strategy.generation_rules, strategy.metadata_rules
    dropped = counting.counts_gated and ctx.gated_given
    if counting.counted and (ctx.raw_changed or dropped or _desire_changed(obj, old, strategy)):
        metadata["generation"] = old_metadata.get("generation", 0) + 1
    if not metadata.get("uid"):
        metadata["uid"] = old_metadata.get("uid", "")
    for key in ("creationTimestamp", "deletionTimestamp"):
        if old_metadata.get(key):
            metadata[key] = old_metadata[key]
    if "deletionGracePeriodSeconds" in old_metadata and "deletionGracePeriodSeconds" not in metadata:
        metadata["deletionGracePeriodSeconds"] = old_metadata["deletionGracePeriodSeconds"]
    errs = _errors(lambda: _validate(resource, strategy, ctx, obj, old), old)
    if errs:
        restate(errs, obj)
        shown = listed(errs, repeated=judging.repeats_errors)
        raise errors.invalid(resource.group_kind, metadata.get("name", ""), shown)
    ctx.warnings += strategy.warnings_on_update(ctx, obj, old)
    strategy.canonicalize(obj)


def _errors(validate: Callable[[], list[FieldError]], old: Object) -> list[FieldError]:
    """What is wrong; not all of it where that is very much, unless the stored object may be wrong in the same way."""
    errs = bounded(validate)
    return validate() if len(errs) > MOST_MADE // 2 and len(orjson.dumps(old)) >= LONG else errs


def _validate(resource: Resource, strategy: Strategy, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
    metadata, old_metadata, judging = obj["metadata"], old["metadata"], strategy.metadata_rules
    errs = validate_metadata(metadata, namespaced=resource.namespaced, validate_name=name_is_path_segment)
    changes = validate_metadata_update(metadata, old_metadata, sound=not errs)
    errs += changes + changes if judging.repeats_errors else changes
    if judging.standard_finalizers and metadata.get("finalizers"):
        standard_finalizers(metadata, errs)
    if judging.judges_prefix_on_update:
        errs += validate_prefix(metadata, strategy.validate_name)
    ctx.metadata_errors = errs
    return errs + strategy.validate_update(ctx, obj, old)


_ABSENT: Final = object()
"""Tells what is missing from what is null, which custom resources may store."""


def _desire_changed(obj: Object, old: Object, strategy: Strategy) -> bool:
    """Whether anything but metadata and status differs."""
    keys = {*obj, *old}.difference(("metadata", "kind", "apiVersion", strategy.status_field))
    if any(obj.get(key, _ABSENT) != old.get(key, _ABSENT) for key in keys):
        return True
    if strategy.generation_rules.counts_empty and isinstance(obj, Emptied):
        own = {key: obj.get(key) for key in keys}
        if has_emptied(Emptied(own, obj.empty), but_bytes=True):
            return True
    if not strategy.generation_rules.any_value:
        return False
    return any(_written(obj.get(key)) != _written(old.get(key)) for key in keys)


def _written(value: Any) -> bytes:
    """Tells apart what only Python takes for equal: true, 1 and 1.0."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
