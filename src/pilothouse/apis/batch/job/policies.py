"""When a job's failed pods fail the job (``podFailurePolicy``), and when some successes suffice (``successPolicy``)."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.batch.job.indexes import IndexesError, count_indexes
from pilothouse.apis.validation import NEGATIVE
from pilothouse.machinery.field_errors import (
    OMIT_VALUE,
    FieldError,
    Path,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_label_key
from pilothouse.machinery.objects import Object

RULES_LIMIT: Final = 20
PATTERNS_LIMIT: Final = 20
EXIT_CODES_LIMIT: Final = 255
INDEXES_LIMIT: Final = 64 * 1024
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")


def _validate_choice(value: str, choices: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    if not value:
        errs.append(required(path, f"valid values: [{' '.join(map(quote, choices))}]"))
    elif value not in choices:
        errs.append(not_supported(path, value, choices))


def validate_failure_policy(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of the failure policy of a job's spec; ``path`` is the policy's."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    where = path.child("rules")
    if len(rules) > RULES_LIMIT:
        errs.append(too_many(where, len(rules), RULES_LIMIT))
    pod = spec["template"]["spec"]
    names = {c.get("name", "") for kind in ("containers", "initContainers") for c in pod.get(kind) or ()}
    for position, rule in enumerate(rules):
        _validate_rule(spec, rule, where.index(position), names, errs)


def _validate_rule(spec: Object, rule: Object, path: Path, names: set[str], errs: list[FieldError]) -> None:
    if rule.get("action") == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            errs.append(invalid(path.child("action"), "FailIndex", "requires the backoffLimitPerIndex to be set"))
    else:
        _validate_choice(rule.get("action", ""), ACTIONS, path.child("action"), errs)
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        _validate_exit_codes(codes, path.child("onExitCodes"), names, errs)
    if patterns:
        _validate_patterns(patterns, path.child("onPodConditions"), errs)
    if codes is not None and patterns:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
        errs.append(invalid(path, OMIT_VALUE, why))
    if codes is None and not patterns:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        errs.append(invalid(path, OMIT_VALUE, why))


def _validate_patterns(patterns: list[Object], path: Path, errs: list[FieldError]) -> None:
    if len(patterns) > PATTERNS_LIMIT:
        errs.append(too_many(path, len(patterns), PATTERNS_LIMIT))
    for position, pattern in enumerate(patterns):
        where, kind = path.index(position), pattern.get("type", "")
        errs += (invalid(where.child("type"), kind, message) for message in check_label_key(kind))
        _validate_choice(pattern.get("status", ""), STATUSES, where.child("status"), errs)


def _validate_exit_codes(codes: Object, path: Path, names: set[str], errs: list[FieldError]) -> None:
    operator, name, values = codes.get("operator", ""), codes.get("containerName"), codes.get("values") or []
    _validate_choice(operator, OPERATORS, path.child("operator"), errs)
    if name is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        errs.append(invalid(path.child("containerName"), name, why))
    where = path.child("values")
    if not values:
        errs.append(invalid(where, codes.get("values"), "at least one value is required"))
    elif len(values) > EXIT_CODES_LIMIT:
        errs.append(too_many(where, len(values), EXIT_CODES_LIMIT))
    seen: set[int] = set()
    for position, value in enumerate(values):
        if operator == "In" and value == 0:
            errs.append(invalid(where.index(position), value, "must not be 0 for the In operator"))
        if value in seen:
            errs.append(duplicate(where.index(position), value))
        seen.add(value)
    if values != sorted(values):
        errs.append(invalid(where, values, "must be ordered"))


def validate_success_policy(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of the success policy of an indexed job's spec; ``path`` is the policy's."""
    rules = spec["successPolicy"].get("rules") or ()
    where = path.child("rules")
    if not rules:
        errs.append(required(where, "at least one rules must be specified when the successPolicy is specified"))
    if len(rules) > RULES_LIMIT:
        errs.append(too_many(where, len(rules), RULES_LIMIT))
    for position, rule in enumerate(rules):
        _validate_success_rule(rule, spec.get("completions") or 0, where.index(position), errs)


def _validate_success_rule(rule: Object, completions: int, path: Path, errs: list[FieldError]) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        errs.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        where = path.child("succeededIndexes")
        if len(indexes.encode()) > INDEXES_LIMIT:
            errs.append(too_long(where, "", INDEXES_LIMIT))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            errs.append(invalid(where, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return
    where = path.child("succeededCount")
    if count < 0:
        errs.append(invalid(where, count, NEGATIVE))
    if count > completions:
        why = f"must be less than or equal to {completions} (the number of specified completions)"
        errs.append(invalid(where, count, why))
    if indexes is not None and count > total:
        why = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        errs.append(invalid(where, count, why))
