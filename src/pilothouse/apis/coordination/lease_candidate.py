"""Candidates for a lease that is given by a coordinator, with the versions they run."""

from __future__ import annotations

import re
from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.coordination.lease import check_election
from pilothouse.apis.core.checks import check_unchanged
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_OLDEST: Final = "OldestEmulationVersion"
_SEMANTIC: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_NOT_SEMANTIC: Final = "must be a valid semantic version"
NO_VERSION: Final = (0, 0, 0, True, ())


Version = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]
"""(major, minor, patch, whether it is no pre-release, the pre-release's parts); compares as versions do."""


def _spec(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def name_is_candidate(name: str, prefix: bool) -> list[str]:
    """Candidates are named like keys of config maps."""
    return names.check_config_map_key(name)


class LeaseCandidateStrategy(Strategy):
    """Which lease a candidate stands for never changes."""

    metadata_rules = MetadataRules(standard_finalizers=False)
    validate_name = staticmethod(name_is_candidate)
    update_rules = UpdateRules(allow_create=True, allow_unconditional=False)
    columns = (
        NAME,
        Column(
            "LeaseName",
            "string",
            lambda obj: _spec(obj).get("leaseName", ""),
            description=Doc("coordination.v1alpha2.LeaseCandidateSpec", "leaseName"),
        ),
        Column("BinaryVersion", "string", lambda obj: _spec(obj).get("binaryVersion", "")),
        Column("EmulationVersion", "string", lambda obj: _spec(obj).get("emulationVersion", "")),
        AGE,
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec = _spec(obj)
        errs = [] if spec.get("leaseName") else [required(_SPEC.child("leaseName"), "")]
        binary, emulated = spec.get("binaryVersion", ""), spec.get("emulationVersion", "")
        emulated_version = parse_version(emulated)
        if emulated and emulated_version is None:
            errs.append(invalid(_SPEC.child("emulationVersion"), emulated, _NOT_SEMANTIC))
        errs += _check_binary(binary, emulated, emulated_version)
        election = spec.get("strategy", "")
        if not election:
            return [*errs, required(_SPEC.child("strategy"), "")]
        if election == _OLDEST and emulated_version in (None, NO_VERSION):
            why = "must be specified when `strategy` is 'OldestEmulationVersion'"
            errs.append(required(_SPEC.child("emulationVersion"), why))
        return errs + check_election(_SPEC.child("strategy"), election)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        name, before = _spec(obj).get("leaseName", ""), _spec(old).get("leaseName", "")
        return self.validate(ctx, obj) + check_unchanged(_SPEC.child("leaseName"), name, before)


def _check_binary(binary: str, emulated: str, emulated_version: Version | None) -> list[FieldError]:
    path = _SPEC.child("binaryVersion")
    if not binary:
        return [required(path, "")]
    version = parse_version(binary)
    errs = [invalid(path, binary, _NOT_SEMANTIC)] if version is None else []
    if emulated and (version or NO_VERSION) < (emulated_version or NO_VERSION):
        errs.append(invalid(path, binary, "must be greater than or equal to `emulationVersion`"))
    return errs


def parse_version(text: str) -> Version | None:
    """A semantic version; None if it is none."""
    match = _SEMANTIC.fullmatch(text)
    if match is None or max(map(len, match.groups("")[:3])) > 20:
        return None
    parts = match[4].split(".") if match[4] else []
    pre = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return int(match[1]), int(match[2]), int(match[3]), not pre, pre
