"""How an object goes."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.resources import table
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.registry.rest.deletion import (
    DeleteOptions,
    Outcome,
    Plan,
    cascading_finalizers,
    plan_deletion,
    validate_delete_options,
)

NOW = "2026-01-02T03:04:05Z"
LATER = "2026-01-02T03:04:35Z"
CORE = {resource.name: resource for resource in table()[GroupVersion("", "v1")].resources}


class Graceful(Strategy):
    """Thirty seconds unless the client says otherwise."""

    def check_graceful_delete(self, ctx: Context, obj: Any, grace: int | None) -> int | None:
        return 30 if grace is None else grace


class Orphaning(Strategy):
    deletion_rules = DeletionRules(orphans_by_default=True)


class NoGarbage(Strategy):
    deletion_rules = DeletionRules(collects_garbage=False)


def plan(strategy: Strategy, options: DeleteOptions | None = None, **metadata: Any) -> Plan:
    stored = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", **metadata}, "data": {}}
    before = {"metadata": dict(stored["metadata"]), "data": {}}
    made = plan_deletion(CORE["configmaps"], strategy, Context(now=NOW), stored, options or DeleteOptions())
    assert stored == before, "the stored object is not touched"
    return made


def marks(made: Plan) -> tuple[Any, ...]:
    metadata = made.object["metadata"]
    return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds"), metadata.get("finalizers")


def test_where_no_garbage_is_collected_nothing_is_kept_for_it() -> None:
    """--enable-garbage-collector=false: finalizers stay as they are, whatever the client says."""
    for own in ([], ["foregroundDeletion", "mine"]):
        stored = {"metadata": {"name": "a", "uid": "u", **({"finalizers": own} if own else {})}}
        options = DeleteOptions(propagation_policy="Orphan")
        context = Context(now=NOW)
        made = plan_deletion(CORE["configmaps"], Strategy(), context, stored, options, collects_garbage=False)
        assert made.outcome is (Outcome.MARKED if own else Outcome.GONE)
        assert made.object["metadata"].get("finalizers", []) == own


def test_nothing_holds_it() -> None:
    assert plan(Strategy()).outcome is Outcome.GONE


def test_finalizers_hold_it() -> None:
    made = plan(Strategy(), finalizers=["x.y/z"], generation=4)
    assert (made.outcome, made.then_remove) == (Outcome.MARKED, False)
    assert marks(made) == (NOW, 0, ["x.y/z"])
    assert made.object["metadata"]["generation"] == 5


def test_marked_and_still_held() -> None:
    made = plan(Strategy(), finalizers=["x.y/z"], deletionTimestamp=NOW, deletionGracePeriodSeconds=0)
    assert made.outcome is Outcome.MARKED
    assert marks(made) == (NOW, 0, ["x.y/z"])


def test_gracefully() -> None:
    made = plan(Graceful(), generation=1)
    assert (made.outcome, made.then_remove) == (Outcome.MARKED, False)
    assert marks(made) == (LATER, 30, None)
    assert made.object["metadata"]["generation"] == 2


def test_at_once() -> None:
    made = plan(Graceful(), DeleteOptions(grace_period_seconds=0))
    assert (made.outcome, made.then_remove) == (Outcome.MARKED, True)
    assert marks(made) == (NOW, 0, None)


def test_a_negative_period_is_one_second() -> None:
    assert marks(plan(Graceful(), DeleteOptions(grace_period_seconds=-7)))[1] == 1


@pytest.mark.parametrize(
    ("grace", "outcome", "wanted"),
    [
        (None, Outcome.PENDING, (LATER, 30, None)),
        (30, Outcome.PENDING, (LATER, 30, None)),
        (60, Outcome.PENDING, (LATER, 30, None)),
        (10, Outcome.MARKED, ("2026-01-02T03:04:15Z", 10, None)),
        (0, Outcome.MARKED, (NOW, 0, None)),
    ],
)
def test_deleting_again(grace: int | None, outcome: Outcome, wanted: tuple[Any, ...]) -> None:
    """A period can be shortened, never lengthened."""
    options = DeleteOptions(grace_period_seconds=grace)
    made = plan(Graceful(), options, deletionTimestamp=LATER, deletionGracePeriodSeconds=30)
    assert (made.outcome, marks(made)) == (outcome, wanted)


@pytest.mark.parametrize(
    ("options", "present", "wanted"),
    [
        (DeleteOptions(), [], []),
        (DeleteOptions(), ["orphan"], ["orphan"]),
        (DeleteOptions(propagation_policy="Orphan"), [], ["orphan"]),
        (DeleteOptions(propagation_policy="Foreground"), ["a/b"], ["a/b", "foregroundDeletion"]),
        (DeleteOptions(propagation_policy="Background"), ["orphan", "a/b"], ["a/b"]),
        (DeleteOptions(orphan_dependents=True), ["foregroundDeletion"], ["orphan"]),
        (DeleteOptions(orphan_dependents=False), ["orphan"], []),
    ],
)
def test_cascading(options: DeleteOptions, present: list[str], wanted: list[str]) -> None:
    assert cascading_finalizers(Strategy(), {"finalizers": present}, options) == wanted


def test_kinds_that_orphan_or_do_not_cascade() -> None:
    foreground = DeleteOptions(propagation_policy="Foreground")
    assert cascading_finalizers(Orphaning(), {}, DeleteOptions()) == ["orphan"]
    assert cascading_finalizers(Orphaning(), {}, foreground) == ["foregroundDeletion"]
    assert cascading_finalizers(NoGarbage(), {"finalizers": ["a/b"]}, foreground) == ["a/b"]
    assert cascading_finalizers(NoGarbage(), {"finalizers": ["orphan", "a/b"]}, DeleteOptions()) == ["a/b"]
    assert plan(NoGarbage(), finalizers=["foregroundDeletion"]).outcome is Outcome.GONE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DeleteOptions(precondition_uid="v"), "the UID in the precondition (v) does not match the UID in record (u)"),
        (DeleteOptions(precondition_version="8"), "the ResourceVersion in the precondition (8) does not match"),
    ],
)
def test_preconditions(options: DeleteOptions, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        plan(Strategy(), options)
    assert caught.value.code == 409
    assert message in caught.value.message
    assert plan(Strategy(), DeleteOptions(precondition_uid="u", precondition_version="7")).outcome is Outcome.GONE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DeleteOptions(propagation_policy="Never"), 'propagationPolicy: Unsupported value: "Never"'),
        (DeleteOptions(propagation_policy="Orphan", orphan_dependents=True), "cannot be both set"),
        (DeleteOptions(dry_run=["Some"]), 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        (
            DeleteOptions(ignore_store_read_error=True, names_preconditions=True),
            "Invalid value: true: cannot be set together with .preconditions",
        ),
    ],
)
def test_options_that_make_no_sense(options: DeleteOptions, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        validate_delete_options(options)
    assert caught.value.code == 422
    assert message in caught.value.message
