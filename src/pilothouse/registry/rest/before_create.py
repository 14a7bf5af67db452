"""What happens to a new object before it is stored.

1. the namespace of object and request agree
2. system metadata is set: uid, creationTimestamp, no deletion marks
3. strategy.prepare_for_create drops what creators may not set
4. metadata, then strategy.validate; every error in one 422
5. strategy.warnings_on_create, strategy.canonicalize
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.metadata import validate_metadata, validate_names, validate_prefix
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.validation import standard_finalizers
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, bounded, listed
from pilothouse.machinery.objects import Object
from pilothouse.machinery.random_ids import new_uid
from pilothouse.registry.rest.given_values import restate

_SYSTEM: Final = frozenset({"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "creationTimestamp", "uid"})


def wipe_system_fields(metadata: dict[str, Any]) -> None:
    """Drop what only the server may say about an object."""
    if not _SYSTEM.isdisjoint(metadata):
        for key in _SYSTEM:
            metadata.pop(key, None)


def before_create(resource: Resource, strategy: Strategy, ctx: Context, obj: Object) -> None:
    """Make the object ready to be stored, or raise the Status that refuses it."""
    metadata: dict[str, Any] = obj["metadata"]
    ensure_namespace(resource, ctx, metadata)
    wipe_system_fields(metadata)
    metadata["creationTimestamp"] = ctx.now
    metadata["uid"] = new_uid()
    strategy.prepare_for_create(ctx, obj)
    if strategy.generation_rules.counted:
        metadata["generation"] = 1
    errs = bounded(lambda: _validate(resource, strategy, ctx, obj))
    if errs:
        restate(errs, obj)
        shown = listed(errs, repeated=strategy.metadata_rules.repeats_errors)
        raise errors.invalid(resource.group_kind, metadata.get("name", ""), shown)
    ctx.warnings += strategy.warnings_on_create(ctx, obj)
    strategy.canonicalize(obj)


def _validate(resource: Resource, strategy: Strategy, ctx: Context, obj: Object) -> list[FieldError]:
    metadata, rules = obj["metadata"], strategy.metadata_rules
    errs = strategy.validate(ctx, obj) if rules.judged_last else []
    if not errs:
        errs = validate_metadata(metadata, namespaced=resource.namespaced, validate_name=strategy.name_rule(obj))
        if rules.standard_finalizers and metadata.get("finalizers"):
            standard_finalizers(metadata, errs)
    if not rules.judged_last:
        ctx.metadata_errors = errs
        errs = errs + strategy.validate(ctx, obj)
    return errs or (validate_names if rules.free_names else validate_prefix)(metadata, name_is_path_segment)


def ensure_namespace(resource: Resource, ctx: Context, metadata: dict[str, Any]) -> None:
    """The object lives where the request says; an object that says otherwise is refused."""
    expected = ctx.namespace if resource.namespaced else ""
    given = metadata.get("namespace", "")
    if given == expected:
        return
    if not expected:
        del metadata["namespace"]
    elif not given:
        metadata["namespace"] = expected
    else:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(why)
