"""Leases: who holds something, and until when."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import check_qualified_name
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_OLDEST: Final = "OldestEmulationVersion"


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


class LeaseStrategy(Strategy):
    """A PUT may create, but never overwrite a version it does not name."""

    metadata_rules = MetadataRules(standard_finalizers=False)
    update_rules = UpdateRules(allow_create=True, allow_unconditional=False)
    columns = (
        NAME,
        Column(
            "Holder",
            "string",
            lambda obj: _spec(obj).get("holderIdentity") or "",
            description=Doc("coordination.v1.LeaseSpec", "holderIdentity"),
        ),
        AGE,
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec = _spec(obj)
        errs: list[FieldError] = []
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            errs.append(invalid(_SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errs.append(invalid(_SPEC.child("leaseTransitions"), transitions, "must be greater than or equal to 0"))
        if spec.get("strategy") is not None:
            errs += check_election(_SPEC.child("strategy"), spec["strategy"])
        if spec.get("preferredHolder") and not spec.get("strategy"):
            errs.append(forbidden(_SPEC.child("preferredHolder"), "may only be specified if `strategy` is defined"))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(ctx, obj)


def check_election(path: Path, election: str) -> list[FieldError]:
    if "/" in election:
        return check_qualified_name(path.child("strategy"), election)
    return [] if election == _OLDEST else [not_supported(path.child("strategy"), election, (_OLDEST,))]
