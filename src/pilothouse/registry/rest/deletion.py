"""Deciding how an object goes: at once, gracefully, or after its finalizers.

``plan_deletion`` is a pure function of the stored object, the options and the strategy. It answers with one of

    GONE       nothing holds it: remove it now
    MARKED     the object as it is to be stored first, with its deletion marks and cascading finalizers; ``then_remove``
               says whether it is removed right after
    PENDING    it is already on its way out and this request changes nothing
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from pilothouse.apis.metadata import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported
from pilothouse.machinery.gvk import GroupKind, GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time, parse_time

_OWN_WORDS = {
    GroupResource("", "namespaces"): "Precondition failed",
    GroupResource("apiextensions.k8s.io", "customresourcedefinitions"): "precondition failed",
}
IGNORING = Path("ignoreStoreReadErrorWithClusterBreakingPotential")


@dataclass(frozen=True, slots=True)
class Deleting:
    """How a server deletes, by its flags."""

    workers: int = 1
    """How many objects of a collection are deleted at once."""
    collects_garbage: bool = True
    """Whether a garbage collector is there, for which deleted objects are kept until it has dealt with dependents."""


DEFAULT_DELETING: Final = Deleting()


@dataclass(slots=True)
class DeleteOptions:
    """What the client said about the deletion, from the body or the query."""

    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    precondition_uid: str | None = None
    precondition_version: str | None = None
    names_preconditions: bool = False
    """Whether the client wrote out preconditions, be it none."""
    dry_run: list[str] = field(default_factory=list)
    ignore_store_read_error: bool = False

    @property
    def has_preconditions(self) -> bool:
        """Whether there are preconditions, or the place for them at least."""
        return self.names_preconditions or self.precondition_uid is not None or self.precondition_version is not None

    @property
    def has_policy(self) -> bool:
        """Whether the client said what shall become of dependents."""
        return self.propagation_policy is not None or self.orphan_dependents is not None

    @property
    def is_dry_run(self) -> bool:
        return bool(self.dry_run)


class Outcome(Enum):
    """How a deletion goes on."""

    GONE = "gone"
    MARKED = "marked"
    PENDING = "pending"


@dataclass(slots=True)
class Plan:
    """The decision; ``object`` is what to store first when ``MARKED``."""

    outcome: Outcome
    object: Object
    then_remove: bool = False
    grace: int | None = None
    """The period as it was settled on, which admission is shown; None where nobody asked for one and none is needed."""


def validate_delete_options(options: DeleteOptions) -> None:
    """Refuse contradictions and unknown policies, as one 422."""
    errs: list[FieldError] = []
    policies = ("Foreground", "Background", "Orphan")
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errs.append(invalid(Path("propagationPolicy"), policy, why))
    if policy is not None and policy not in policies:
        errs.append(not_supported(Path("propagationPolicy"), policy, (*policies, "nil")))
    if options.dry_run and any(value != "All" for value in options.dry_run):
        errs.append(not_supported(Path("dryRun"), options.dry_run, ("All",)))
    if options.ignore_store_read_error:
        together = {
            "propagationPolicy": policy is not None,
            "orphanDependents": options.orphan_dependents is not None,
            "gracePeriodSeconds": options.grace_period_seconds is not None,
            "preconditions": options.has_preconditions,
        }
        errs += (invalid(IGNORING, True, f"cannot be set together with .{name}") for name in together if together[name])
    if errs:
        raise errors.invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", errs)


def check_preconditions(resource: Resource, metadata: dict[str, Any], options: DeleteOptions) -> None:
    """Refuse with 409 when the object is not the one the client meant."""
    where = GroupResource(resource.hub.group, resource.kind)
    uid, version = options.precondition_uid, options.precondition_version
    if words := _OWN_WORDS.get(resource.group_resource):
        _check_in_own_words(resource.group_resource, words, metadata, uid, version)
    if uid is not None and uid != metadata.get("uid"):
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({metadata.get('uid', '')}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict(where, metadata["name"], why)
    if version is not None and version != metadata.get("resourceVersion"):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata.get('resourceVersion', '')}). The object might have been modified"
        )
        raise errors.conflict(where, metadata["name"], why)


def _check_in_own_words(
    where: GroupResource, words: str, metadata: dict[str, Any], uid: str | None, version: str | None
) -> None:
    """Some kinds have words of their own."""
    for title, wanted, key in (("UID", uid, "uid"), ("ResourceVersion", version, "resourceVersion")):
        found = metadata.get(key, "")
        if wanted is not None and wanted != found:
            why = f"{words}: {title} in precondition: {wanted}, {title} in object meta: {found}"
            raise errors.conflict(where, metadata["name"], why)


def plan_deletion(
    resource: Resource,
    strategy: Strategy,
    ctx: Context,
    stored: Object,
    options: DeleteOptions,
    *,
    collects_garbage: bool = True,
) -> Plan:
    """Decide. ``stored`` is not changed; a marked object is a copy with new metadata."""
    check_preconditions(resource, stored["metadata"], options)
    obj = {**stored, "metadata": dict(stored["metadata"])}
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp"):
        if strategy.is_held(stored):
            return Plan(Outcome.PENDING, stored)
    elif strategy.begin_deletion(ctx, obj):
        if strategy.deletion_rules.begins_by_policy:
            _set_finalizers(metadata, _stated_finalizers(metadata, options))
        return Plan(Outcome.MARKED, obj, grace=options.grace_period_seconds)
    grace = options.grace_period_seconds
    if grace is not None and grace < 0:
        grace = 1
    graceful, pending, grace = _graceful(strategy, ctx, obj, grace)
    if pending:
        return Plan(Outcome.PENDING, stored)
    finalizers = cascading_finalizers(strategy, metadata, options) if collects_garbage else _own_finalizers(metadata)
    _set_finalizers(metadata, finalizers)
    if graceful:
        return Plan(Outcome.MARKED, obj, then_remove=not finalizers and not grace, grace=grace)
    if finalizers:
        _mark(metadata, ctx.now)
        return Plan(Outcome.MARKED, obj, grace=grace)
    return Plan(Outcome.GONE, stored, grace=grace)


def _set_finalizers(metadata: dict[str, Any], finalizers: list[str]) -> None:
    if set(finalizers) == set(metadata.get("finalizers") or ()):
        return
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _stated_finalizers(metadata: dict[str, Any], options: DeleteOptions) -> list[str]:
    """The finalizers of an object that begins its deletion itself: not to orphan means to delete in the foreground."""
    present = metadata.get("finalizers") or []
    others = [name for name in present if name not in (ORPHAN_DEPENDENTS, DELETE_DEPENDENTS)]
    if options.orphan_dependents is not None:
        return [*others, ORPHAN_DEPENDENTS if options.orphan_dependents else DELETE_DEPENDENTS]
    if options.propagation_policy is None:
        return list(present)
    wanted = {"Orphan": [ORPHAN_DEPENDENTS], "Foreground": [DELETE_DEPENDENTS]}
    return others + wanted.get(options.propagation_policy, [])


def _own_finalizers(metadata: dict[str, Any]) -> list[str]:
    """Those that there are: where no garbage is collected, nobody would take away what was added."""
    return list(metadata.get("finalizers") or ())


def _graceful(strategy: Strategy, ctx: Context, obj: Object, grace: int | None) -> tuple[bool, bool, int | None]:
    """(graceful, already pending, the period)."""
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp"):
        if strategy.check_graceful_delete(ctx, obj, grace) is None and "deletionGracePeriodSeconds" not in metadata:
            return False, False, grace
        running = metadata.get("deletionGracePeriodSeconds")
        if not running:
            return False, False, grace
        if grace is None or grace >= running:
            return False, True, running
        _shorten(metadata, running, grace, ctx.now)
        return True, False, grace
    period = strategy.check_graceful_delete(ctx, obj, grace)
    if period is None:
        return False, False, grace
    metadata["deletionTimestamp"] = format_time(Instant(parse_time(ctx.now).seconds + period))
    metadata["deletionGracePeriodSeconds"] = period
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    return True, False, period


def _shorten(metadata: dict[str, Any], running: int, grace: int, now: str) -> None:
    until = Instant(parse_time(metadata["deletionTimestamp"]).seconds + grace - running)
    if until < parse_time(now):
        until = parse_time(now)
        grace = 1 if grace else 0
    metadata["deletionTimestamp"] = format_time(until)
    metadata["deletionGracePeriodSeconds"] = grace


def _mark(metadata: dict[str, Any], now: str) -> None:
    existing = metadata.get("deletionTimestamp")
    if not existing and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if not existing or parse_time(existing) > parse_time(now):
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def cascading_finalizers(strategy: Strategy, metadata: dict[str, Any], options: DeleteOptions) -> list[str]:
    """The object's finalizers with the cascading ones set as options, object and kind demand, in this order."""
    present = metadata.get("finalizers") or []
    others = [name for name in present if name not in (ORPHAN_DEPENDENTS, DELETE_DEPENDENTS)]
    if not strategy.deletion_rules.collects_garbage:
        return others
    if options.orphan_dependents is not None:
        wanted = ORPHAN_DEPENDENTS if options.orphan_dependents else ""
    elif options.propagation_policy is not None:
        wanted = {"Orphan": ORPHAN_DEPENDENTS, "Foreground": DELETE_DEPENDENTS}.get(options.propagation_policy, "")
    else:
        own = next((name for name in present if name in (ORPHAN_DEPENDENTS, DELETE_DEPENDENTS)), "")
        wanted = own or (ORPHAN_DEPENDENTS if strategy.deletion_rules.orphans_by_default else "")
    return [*others, wanted] if wanted else others
